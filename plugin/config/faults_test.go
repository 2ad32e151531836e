package config

import (
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/plugin/dialect"
)

var faultCases = []struct{ section, text, want string }{
	{"version", "", "version: found nothing; want 1"},
	{"version", "2", "version: found 2; want 1"},
	{"version", `1.5e0`, "version: found 1.5e0; want 1"},
	{"currency", "", "currency: found nothing; want the ISO 4217 code that all prices are in, such as EUR"},
	{"currency", `"euro"`, `currency: found "euro"; want an ISO 4217 code, such as EUR`},
	{"surprise", "1", "surprise: found an unknown field; want one of version, currency, store, hold, body, lease, failure, identity, routes, models, unknown_model, targets, limits, kill, park, answer"},
	{"cache", "{}", "cache: found a setting of a later version; want it left out, because it is not carried out by this version"},
	{"breaker", "{}", "breaker: found a setting of a later version; want it left out, because it is not carried out by this version"},
	{"stream", "{}", "stream: found a setting of a later version; want it left out, because it is not carried out by this version"},
	{"answer", `{"exact_cost": "yes", "hold": 262144, "hold_for": "1ms", "held": 1}`, "answer.exact_cost: found \"yes\"; want true or false\nanswer.hold: found 262144; want a size from 1KiB to 16MiB, such as 256KiB\nanswer.hold_for: found \"1ms\"; want a time from 10ms to 10s, such as 300ms\nanswer.held: found an unknown field; want one of exact_cost, hold, hold_for"},

	{"store", "", "store: found nothing; want an object with the cluster of the bridge to Redis"},
	{"store", "[]", "store: found a list; want an object with cluster, protocol, token, timeout, namespace, shard"},
	{"store", `{"token": ""}`, "store.cluster: found nothing; want the name of the bridge's cluster, or {property: [...]}\nstore.token: found a value that is not shown; want the bridge's bearer token, without control characters, such as ${EMMER_STORE_TOKEN}"},
	{"store", `{"cluster": "b", "shard": "org"}`, ""},
	{"store", `{"cluster": "b", "shard": "team"}`, "store.shard: found \"team\"; want one of none, org"},
	{"store", `{"cluster": "b", "protocol": "webdis", "shard": "org"}`, "store.protocol: found \"webdis\"; want one of upstash, because it is not carried out by this version"},
	{"store", `{"cluster": "b", "protocol": "resp"}`, `store.protocol: found "resp"; want upstash`},
	{"store", `{"cluster": {"property": []}, "timeout": "20s", "namespace": "a:b"}`, "store.cluster.property: found a list; want a list of names that lead to a property\nstore.timeout: found \"20s\"; want a time from 1ms to 10s, such as 50ms\nstore.namespace: found \"a:b\"; want at most 32 of A-Z, a-z, 0-9, _ and -"},
	{"store", `{"cluster": "b", "token": "${GONE}"}`, "store.token: found ${GONE}, which is not set; want that variable in the environment of the VM"},
	{"store", `{"cluster": "${"}`, "store.cluster: found a ${ that begins no ${NAME}; want ${NAME} for a variable, or $${ for the text ${"},
	{"store", `{"cluster": "b", "cluster": "c"}`, "store.cluster: found it a second time; want it once"},

	{"hold", `{"mode": "both"}`, `hold.mode: found "both"; want one of pair, flag`},
	{"hold", `"pair"`, `hold: found "pair"; want an object with mode, mismatch`},
	{"body", `{"hold": "1MB", "inflate": "1GiB", "depth": 1}`, "body.hold: found \"1MB\"; want a size from 1KiB to 64MiB, such as 1MiB\nbody.inflate: found \"1GiB\"; want a size from 1KiB to 64MiB, such as 8MiB\nbody.depth: found 1; want a whole number from 8 to 512"},
	{"body", `{"count_exact": 0}`, "body.count_exact: found 0; want a size from 1KiB to 64MiB, such as 1MiB"},
	{"lease", `{"for": 60}`, "lease.for: found 60; want a time from 1s to 1h, such as 1m"},
	{"failure", `{"mode": "locally", "local_share": "0%"}`, "failure.mode: found \"locally\"; want one of closed, open, local\nfailure.local_share: found \"0%\"; want a whole share from 1% to 100%"},
	{"limits", `[{"name": "a", "count": "requests", "bucket": {"rate": "1/s", "burst": 9}, "failure": {"mode": "open", "local_share": "5%"}}, {"name": "b", "count": "requests", "bucket": {"rate": "1/s", "burst": 9}, "failure": {"mode": "local", "local_share": 5}}, {"name": "c", "count": "requests", "bucket": {"rate": "1/s", "burst": 9}, "failure": {"share": "5%"}}]`,
		"limits[0].failure.local_share: found it beside another mode than local; want it left out, or mode: local\nlimits[1].failure.local_share: found 5; want a whole share from 1% to 100%\nlimits[2].failure.share: found an unknown field; want one of mode, local_share"},
	{"routes", `{"background": "hold"}`, `routes.background: found "hold"; want one of deny, pass`},
	{"routes", `{"unknown": "maybe"}`, `routes.unknown: found "maybe"; want one of deny, pass`},
	{"kill", `{"poll": "1ms", "cut_streams": true}`, "kill.poll: found \"1ms\"; want a time from 50ms to 1m, such as 250ms\nkill.cut_streams: found a setting of a later version; want it left out, because it is not carried out by this version"},

	{"identity", `{"org": {}, "class": {"header": "x-class", "query": "c"}}`, "identity.org: found none; want one of value, header, query, jwt, or a list of such sources\nidentity.class: found header and query; want one of value, header, query, jwt, or a list of such sources"},
	{"identity", `{"org": {"value": "a"}, "model": {"value": "a"}, "Key": {"value": "a"}, "a b": {"value": "c"}}`, "identity.model: found a name that doesn't fit; want a-z, then at most 31 of a-z, 0-9, _ and -; not global, target, model, provider or dialect\nidentity.Key: found a name that doesn't fit; want a-z, then at most 31 of a-z, 0-9, _ and -; not global, target, model, provider or dialect\nidentity[\"a b\"]: found a name that doesn't fit; want a-z, then at most 31 of a-z, 0-9, _ and -; not global, target, model, provider or dialect"},
	{"identity", `{"org": [{"header": "x emmer"}, {"header": "X-Emmer-Org"}, {"header": "a", "strip": "B c"}, {"query": "q", "strip": "Bearer"}, {"value": "v", "hash": true}, {"jwt": ["payload"]}]}`,
		"identity.org[0].header: found \"x emmer\"; want the name of a request header\nidentity.org[1].header: found \"X-Emmer-Org\"; want a header that is not x-emmer-*, because those are removed from requests\nidentity.org[2].strip: found \"B c\"; want an authentication scheme, such as Bearer, beside header\nidentity.org[3].strip: found \"Bearer\"; want an authentication scheme, such as Bearer, beside header\nidentity.org[4].hash: found true; want hash beside header, query or jwt; a constant needs none\nidentity.org[5].jwt: found a list; want a list: what payload_in_metadata says, then the names that lead to the claim"},
	{"identity", `{"org": {"value": "a"}, "class": {"header": "c", "one_of": ["a", "b", "a"], "default": "x", "guard": {"z": {"jwt": ["p", "r"], "equals": "e"}, "x": {}}}}`,
		"identity.class.one_of[2]: found \"a\" a second time; want it once\nidentity.class.default: found \"x\"; want a value that is in one_of\nidentity.class.guard.z: found a guard of a value that is not in one_of; want a guard of one that is\nidentity.class.guard.x: found a guard of a value that is not in one_of; want a guard of one that is\nidentity.class.guard.x.jwt: found nothing; want the path of a claim\nidentity.class.guard.x.equals: found nothing; want the text that the claim must be"},
	{"identity", `{"org": {"from": [{"value": "a"}], "header": "b", "missing": "ask"}}`, "identity.org.header: found it beside from; want it in an element of from\nidentity.org.missing: found \"ask\"; want one of deny, pass"},

	{"identity", `{"org": {"value": "a"}, "class": {"header": "c", "hash": true, "one_of": ["gold"], "guard": {"gold": {"jwt": ["p", "r"], "equals": "e"}}}}`,
		"identity.class.one_of[0]: found a value that class never has, because it is hashed; want the hash: 32 of 0-9 and a-f, as the access log shows it\nidentity.class.guard.gold: found a value that class never has, because it is hashed; want the hash: 32 of 0-9 and a-f, as the access log shows it"},
	{"identity", `{"org": {"value": "a"}, "class": {"header": "c", "hash": true, "one_of": ["00112233445566778899aabbccddeeff", "none"], "default": "none"}}`, ""},

	{"models", `{}`, "models: found no models; want at least one; without one every call would be refused\ntargets.east.models.m-1: found a model that is not under models; want one that is"},
	{"models", `{"m-1": {"tokenizer": "words", "context": "1k", "max_output": 100, "default_output": 200, "can": ["tools"]}}`,
		"models.m-1.tokenizer: found \"words\"; want one of o200k_base, cl100k_base, o200k_harmony, approx-o200k, approx-cl100k, approx-claude, approx-gemma\nmodels.m-1.context: found \"1k\"; want a whole number from 1 to 9007199254740991\nmodels.m-1.default_output: found 200; want no more than max_output, which is 100\nmodels.m-1.can: found a setting of a later version; want it left out, because it is not carried out by this version"},
	{"models", `{"m-1": {"price": {"input": 2.5, "output": "0.0000000001"}}, "m.2": {"price": {"input": "-1"}}}`,
		"models.m-1.price.input: found 2.5; want the price of 1,000,000 tokens, a decimal string such as \"2.50\"\nmodels.m-1.price.output: found \"0.0000000001\"; want the price of 1,000,000 tokens, a decimal string such as \"2.50\", no finer than 1/1000000000 EUR and below 2^53 of these\nmodels[\"m.2\"].price.input: found \"-1\"; want the price of 1,000,000 tokens, a decimal string such as \"2.50\", no finer than 1/1000000000 EUR and below 2^53 of these"},
	{"models", `{"m-1": {"price": {}}, "m-2": {"price": {"output": "1", "cache_write": "2"}}, "m-3": {"price": {"audio_output": "1", "pages": "2"}}, "m-4": {"price": {"image": "0.04"}}}`,
		"models.m-1.price: found no prices; want at least one of " + listed(priceFields) + "\n" +
			"models.m-2.price.input: found nothing; want the price of 1,000,000 tokens, a decimal string such as \"2.50\"\n" +
			"models.m-3.price.output: found nothing; want the price of 1,000,000 tokens, a decimal string such as \"2.50\"\n" +
			"models.m-3.price.pages: found an unknown field; want one of " + listed(priceFields)},
	{"models", `{"m-1": {"aliases": ["m-2"]}, "m-2": {"aliases": ["x", "x"]}, "m-3": {"aliases": ["x"]}}`,
		"models.m-1.aliases: found \"m-2\", which is a name of m-2; want names that no other model has\nmodels.m-2.aliases[1]: found \"x\" a second time; want it once\nmodels.m-3.aliases: found \"x\", which is a name of m-2; want names that no other model has"},
	{"models", `{"m-1": {"prompt": 3}, "m-2": {"prompt": {"like": "m-1", "per_message": -1, "reply": 1.5, "enum": -1001, "per_image": 4, "page": "many"}}}`,
		"models.m-1.prompt: found 3; want an object with like, per_message, per_name, reply, tools, tool, tool_description, properties, property, property_description, enum, enum_item, response_format, image, audio_per_second, video_per_second, page, file_unknown\n" +
			"models.m-2.prompt.like: found \"m-1\"; want the name of a model that Emmer knows, such as gpt-4o\n" +
			"models.m-2.prompt.per_message: found -1; want a whole number from 0 to 10000000\n" +
			"models.m-2.prompt.reply: found 1.5; want a whole number from -1000 to 10000000\n" +
			"models.m-2.prompt.enum: found -1001; want a whole number from -1000 to 10000000\n" +
			"models.m-2.prompt.per_image: found an unknown field; want one of like, per_message, per_name, reply, tools, tool, tool_description, properties, property, property_description, enum, enum_item, response_format, image, audio_per_second, video_per_second, page, file_unknown\n" +
			"models.m-2.prompt.page: found \"many\"; want a whole number from 0 to 10000000"},
	{"models", `{"m-1": {"prompt": {"image": {"tiles": {"base": 85}, "flat": 3, "size": 1}}}, "m-2": {"prompt": {"image": {"patches": {"side": 16, "per_thousand": 0}}}}, "m-3": {"prompt": {"image": {"crops": {"tile": 1}}}}}`,
		"models.m-1.prompt.image.tiles.tile: found nothing; want a whole number from 0 to 10000000\n" +
			"models.m-1.prompt.image.flat: found a second way to count; want one of flat, tiles, patches, crops\n" +
			"models.m-1.prompt.image.size: found an unknown field; want one of flat, tiles, patches, crops, low, unknown\n" +
			"models.m-2.prompt.image.patches.side: found 16; want 28 or 32\n" +
			"models.m-2.prompt.image.patches.per_thousand: found 0; want a whole number from 1 to 10000000\n" +
			"models.m-3.prompt.image.crops.crop: found nothing; want a whole number from 0 to 10000000\n" +
			"models.m-3.prompt.image.crops.tile: found an unknown field; want one of crop"},
	{"unknown_model", `{"use": "m-9"}`, `unknown_model.use: found "m-9"; want a name under models`},
	{"unknown_model", `"pass"`, `unknown_model: found "pass"; want deny, or {use: a name under models}`},

	{"targets", `{}`, "targets: found no targets; want at least one, or the field left out"},
	{"targets", `{"a/b": {"provider": "x y", "include_usage": "ask", "cached_in_input": "yes", "models": {"m-9": {}, "m-1": {"name": ""}}}}`,
		"targets[\"a/b\"]: found a name that doesn't fit; want 1 to 64 of A-Z, a-z, 0-9, _, - and .\ntargets[\"a/b\"].provider: found \"x y\"; want 1 to 64 of A-Z, a-z, 0-9, _, - and .\ntargets[\"a/b\"].include_usage: found \"ask\"; want one of as_asked, inject\ntargets[\"a/b\"].cached_in_input: found \"yes\"; want true or false\ntargets[\"a/b\"].models.m-9: found a model that is not under models; want one that is\ntargets[\"a/b\"].models.m-1.name: found \"\"; want the model's name at this target"},

	{"limits", `{}`, "limits: found an object; want a list of limits"},
	{"limits", `[{}]`, "limits[0].name: found nothing; want 1 to 64 of A-Z, a-z, 0-9, _, - and .\nlimits[0].count: found nothing; want one of tokens, input_tokens, output_tokens, requests, cost, concurrency, search_units, images, audio_seconds\nlimits[0]: found neither bucket nor window nor burn; want one of them"},
	{"limits", `[{"name": "a", "count": "tokens", "bucket": {"rate": "1.5e0/s", "burst": 1.5e0}}]`, "limits[0].bucket.rate: found \"1.5e0/s\"; want a rate such as 60000/m, from 1 to 9007199254740991 per s, m, h or d\nlimits[0].bucket.burst: found 1.5e0; want a whole number from 1 to 9007199254740991"},
	{"limits", `[{"name": "a", "count": "tokens", "bucket": {"rate": "0/s", "burst": 0}}]`, "limits[0].bucket.rate: found \"0/s\"; want a rate such as 60000/m, from 1 to 9007199254740991 per s, m, h or d\nlimits[0].bucket.burst: found 0; want a whole number from 1 to 9007199254740991"},
	{"limits", `[{"name": "a", "count": "tokens", "bucket": {"rate": "9007199254740991/d", "burst": 1}}]`, "limits[0].bucket.rate: found \"9007199254740991/d\"; want a rounder rate: reduced, it times its period in ms must stay below 2^53"},
	{"limits", `[{"name": "a", "count": "tokens", "bucket": {"rate": "5/m"}, "max": 1}]`, "limits[0].bucket.burst: found nothing; want a whole number from 1 to 9007199254740991\nlimits[0].max: found max beside bucket; want bucket.burst, or a window"},
	{"limits", `[{"name": "a", "count": "tokens", "bucket": {"rate": "5/m", "burst": 1}, "window": {}}]`, "limits[0]: found bucket and window; want one of them"},
	{"limits", `[{"name": "a", "count": "cost", "for": {"model": "m-1"}, "max": 50, "window": {"calendar": "fortnight", "timezone": "Mars/Base", "starts": 3}}]`,
		"limits[0].max: found 50; want an amount of money above 0, a decimal string such as \"50\"\nlimits[0].window.calendar: found \"fortnight\"; want one of hour, day, week, month, quarter, year\nlimits[0].window.timezone: found \"Mars/Base\"; want the name of a time zone, such as Europe/Amsterdam\nlimits[0].window.starts: found starts for calendar hour; want it left out"},
	{"limits", `[{"name": "a", "count": "cost", "for": {"model": "m-1"}, "max": "9007199.254740992", "window": {"calendar": "month", "starts": 32}}]`,
		"limits[0].max: found \"9007199.254740992\"; want an amount of money above 0, a decimal string such as \"50\", no finer than 1/1000000000 EUR and below 2^53 of these\nlimits[0].window.starts: found 32; want a whole number from 1 to 31"},
	{"limits", `[{"name": "a", "count": "cost", "for": {"model": "m-1"}, "max": "0", "window": {"calendar": "month"}}]`, "limits[0].max: found \"0\"; want an amount of money above 0, a decimal string such as \"50\""},
	{"limits", `[{"name": "a", "count": "cost", "max": "1", "window": {"calendar": "month"}}]`, "limits[0].count: found cost, and unpriced models: m-2; want a price for each, or a for that leaves them out"},
	{"targets", `{"t": {"models": {"m-1": {}, "m-2": {"name": "x"}}}}`, ""},
	{"limits", `[{"name": "a", "for": {"target": "west", "model": "m-2"}, "count": "cost", "max": "1", "window": {"calendar": "month"}}]`, "limits[0].count: found cost, and unpriced models: m-2; want a price for each, or a for that leaves them out"},
	{"limits", `[{"name": "a", "for": {"provider": "acme"}, "count": "cost", "max": "1", "window": {"calendar": "month"}}]`, ""},
	{"limits", `[{"name": "a", "count": "tokens", "max": {"tier": {}}, "window": {"calendar": "day"}}]`, "limits[0].max: found no tiers; want a maximum for each value of the claim\nlimits[0].max.default: found nothing; want a whole number from 1 to 9007199254740991, for those without the claim\nlimits[0].max.tier.jwt: found nothing; want the path of a claim: a list, what payload_in_metadata says, then the names that lead to it"},
	{"limits", `[{"name": "a", "count": "concurrency", "max": {"tier": {"jwt": ["p", "plan"], "default": 3}, "gold": 2147483648, "": 4, "at_most": 9, "jwt": ["p", "x"], "default": "none"}}]`,
		"limits[0].max.tier.default: found an unknown field; want one of jwt\nlimits[0].max.gold: found 2147483648; want a whole number from 1 to 2147483647\nlimits[0].max[\"\"]: found a tier without a name; want the value of the claim that it is for\nlimits[0].max.at_most: found it beside tier; want it left out\nlimits[0].max.jwt: found it beside tier; want it left out\nlimits[0].max.default: found \"none\"; want a whole number from 1 to 2147483647"},
	{"limits", `[{"name": "a", "count": "tokens", "max": {"jwt": ["p"], "default": 50, "at_most": 49, "maximum": 2}, "window": {"rolling": "1h"}}, {"name": "b", "count": "cost", "for": {"model": "m-1"}, "max": {"default": 5}, "window": {"rolling": "1h"}}, {"name": "c", "count": "tokens", "bucket": {"rate": "1/s", "burst": {"jwt": ["p", "x"], "default": 5}}}]`,
		"limits[0].max.jwt: found a list; want a list: what payload_in_metadata says, then the names that lead to the claim\nlimits[0].max.at_most: found 49; want at least the default\nlimits[0].max.maximum: found an unknown field; want one of jwt, default, at_most, tier\nlimits[1].max.jwt: found nothing; want the path of a claim: a list, what payload_in_metadata says, then the names that lead to it\nlimits[1].max.default: found 5; want an amount of money above 0, a decimal string such as \"50\"\nlimits[2].bucket.burst: found an object; want a whole number from 1 to 9007199254740991"},
	{"limits", `[{"name": "a", "count": "tokens", "max": 1, "window": {}}]`, "limits[0].window.calendar: found nothing; want one of hour, day, week, month, quarter, year, or rolling"},
	{"limits", `[{"name": "a", "count": "tokens", "max": 1, "window": {"rolling": "31d", "calendar": "day", "timezone": "UTC", "rolls": 1}}]`, "limits[0].window.rolling: found \"31d\"; want a time from 1s to 30d, such as 1h\nlimits[0].window.calendar: found it beside rolling; want it left out\nlimits[0].window.timezone: found it beside rolling; want it left out\nlimits[0].window.rolls: found an unknown field; want one of calendar, rolling, timezone, starts"},
	{"limits", `[{"name": "a", "count": "tokens", "window": {"rolling": "1500ms"}}]`, "limits[0].max: found nothing; want a whole number from 1 to 9007199254740991\nlimits[0].window.rolling: found \"1500ms\"; want a whole number of seconds"},
	{"limits", `[{"name": "a", "count": "concurrency", "max": 2147483648}, {"name": "b", "count": "concurrency", "bucket": {"rate": "1/s", "burst": 2}, "lost": "charge"}, {"name": "c", "count": "concurrency", "max": 5, "window": {"calendar": "day"}}]`,
		"limits[0].max: found 2147483648; want a whole number from 1 to 2147483647\nlimits[1].max: found nothing; want a whole number from 1 to 2147483647\nlimits[1].bucket: found it beside count: concurrency; want max alone: a slot is free when its call has ended\nlimits[1].lost: found \"charge\"; want refund, because a call that is lost runs no longer\nlimits[2].window: found it beside count: concurrency; want max alone: a slot is free when its call has ended"},
	{"limits", `[{"name": "a", "count": "cost", "burn": {"above": "10/m"}}]`, "limits[0].count: found cost, and unpriced models: m-2; want a price for each, or a for that leaves them out\nlimits[0].burn.for: found nothing; want a time from 1m to 30m\nlimits[0].burn.then: found nothing; want kill"},
	{"limits", `[{"name": "a", "by": ["org", "model"], "count": "tokens", "max": 5, "mode": "shadow", "burn": {"above": "10/h", "for": "31m", "then": "deny", "scope": "org"}}, {"name": "b", "by": ["dialect"], "count": "concurrency", "failure": "open", "burn": {"above": 7, "for": "90s", "then": "kill"}}, {"name": "c", "count": "tokens", "burn": "10/m"}]`,
		"limits[0].by: found a list; want at most one name beside burn, of an identity, target, model or provider: it is their flag that is raised\nlimits[0].max: found it beside burn; want it left out, because burn refuses nothing by itself\nlimits[0].mode: found it beside burn; want it left out, because burn refuses nothing by itself\nlimits[0].burn.above: found \"10/h\"; want a rate a minute such as 60000/m, from 1 to 9007199254740991\nlimits[0].burn.for: found \"31m\"; want a time from 1m to 30m, such as 1m\nlimits[0].burn.then: found \"deny\"; want kill\nlimits[0].burn.scope: found an unknown field; want one of above, for, then\n" +
			"limits[1].by: found a list; want at most one name beside burn, of an identity, target, model or provider: it is their flag that is raised\nlimits[1].count: found concurrency beside burn; want something that is used up\nlimits[1].failure: found it beside burn; want it left out, because burn refuses nothing by itself\nlimits[1].burn.above: found 7; want a rate a minute such as 60000/m, from 1 to 9007199254740991\nlimits[1].burn.for: found \"90s\"; want whole minutes\nlimits[2].burn: found \"10/m\"; want an object with above, for, then"},
	{"limits", `[{"name": "a", "by": ["org"], "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}, "then": ["deny"], "mode": "dry", "on_overrun": "cut", "failure": "local?", "status": 200, "lost": "keep"}]`,
		"limits[0].then: found a setting of a later version; want it left out, because it is not carried out by this version\nlimits[0].mode: found \"dry\"; want one of enforce, shadow\nlimits[0].on_overrun: found \"cut\"; want one of debt, because it is not carried out by this version\nlimits[0].failure: found \"local?\"; want one of closed, open, local\nlimits[0].status: found 200; want one of 402, 403, 429, 503\nlimits[0].lost: found \"keep\"; want one of refund, charge"},
	{"limits", `[{"name": "a", "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}, "warn": ["0%", "80%", "80%", 95, "101%", "9.5%"]}, {"name": "b", "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}, "warn": []}, {"name": "c", "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}, "warn": "80%"}]`,
		"limits[0].warn[0]: found \"0%\"; want a whole share from 1% to 100%\nlimits[0].warn[2]: found \"80%\"; want more than the share before it\nlimits[0].warn[3]: found 95; want a whole share from 1% to 100%\nlimits[0].warn[4]: found \"101%\"; want a whole share from 1% to 100%\nlimits[0].warn[5]: found \"9.5%\"; want a whole share from 1% to 100%\nlimits[1].warn: found a list; want a list of at most 10 shares in ascending order, such as [80%, 95%]\nlimits[2].warn: found \"80%\"; want a list of at most 10 shares in ascending order, such as [80%, 95%]"},
	{"limits", `[{"name": "a", "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}, "queue": {"slower": "50ms", "slow": "0s"}}, {"name": "b", "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}, "queue": "61m"}, {"name": "c", "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}, "queue": {}}, {"name": "d", "count": "tokens", "max": 9, "window": {"calendar": "day"}, "queue": "5s"}, {"name": "e", "count": "concurrency", "max": 9, "queue": "5s"}, {"name": "f", "count": "tokens", "burn": {"above": "9/m", "for": "1m", "then": "kill"}, "queue": "5s"}, {"name": "g", "for": {"class": "fast"}, "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}, "queue": {"fast": "1s", "slow": "5s"}}]`,
		"limits[0].queue.slower: found a class that no call has; want a value that is in one_of of class\nlimits[0].queue.slow: found \"0s\"; want a time from 1ms to 1h, such as 5m\nlimits[1].queue: found \"61m\"; want a time from 1ms to 1h, such as 5m\nlimits[2].queue: found no class; want a time for at least one, or it left out\nlimits[3].queue: found it beside something else than a bucket; want it left out: only where a rate refills does a call have a turn to wait for\nlimits[4].queue: found it beside something else than a bucket; want it left out: only where a rate refills does a call have a turn to wait for\nlimits[5].queue: found it beside burn; want it left out, because burn refuses nothing by itself\nlimits[6].queue.slow: found a class that the limit is not for; want it left out, or in for.class too"},
	{"park", `{"calls": 0, "bytes": "1GB", "each": 3}`,
		"park.calls: found 0; want a whole number from 1 to 100000\npark.bytes: found \"1GB\"; want a size from 1KiB to 1024MiB, such as 64MiB\npark.each: found an unknown field; want one of calls, bytes"},
	{"limits", `[{"name": "a", "for": {"org": "other"}, "count": "requests", "max": 1, "window": {"calendar": "day"}}]`, "limits[0].for.org: found \"other\"; want a value that org can have"},
	{"limits", `[{"name": "a", "for": {"dialect": "openai"}, "count": "requests", "max": 1, "window": {"calendar": "day"}}]`, "limits[0].for.dialect: found \"openai\"; want one of " + strings.Join(dialect.Names(), ", ") + ", or a pattern that fits one"},
	{"limits", `[{"name": "a", "by": ["team", "org", "org"], "for": {"team": "x", "class": "slower", "model": "m-9*", "target": [], "provider": "a*e", "dialect": 7}, "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}}, {"name": "a", "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}}]`,
		"limits[0].by[0]: found \"team\"; want one of org, class, target, model, provider, dialect\nlimits[0].by[2]: found \"org\" a second time; want it once\nlimits[0].for.team: found a name that is not known; want one of org, class, target, model, provider, dialect\nlimits[0].for.class: found \"slower\"; want a value that is in one_of of class\nlimits[0].for.model: found \"m-9*\"; want a name or alias under models, or a pattern that fits one\nlimits[0].for.target: found an empty list; want at least one value, or the field left out\nlimits[0].for.provider: found \"a*e\"; want a * only at the end\nlimits[0].for.dialect: found 7; want a string, or a list of strings\nlimits[1].name: found \"a\" a second time; want a name that no other limit has"},
}

func TestFaults(t *testing.T) {
	for _, c := range faultCases {
		_, err := Parse([]byte(doc(c.section, c.text)), env)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s\ngot:\n%s\nwant:\n%s\n", c.section, c.text, got, c.want)
		}
	}
}

// A model is priced by its own price or by that of each target that serves it.
func TestPricesAtTargets(t *testing.T) {
	const limit = `[{"name": "a", "count": "cost", "max": "1", "window": {"calendar": "month"}}]`
	const price = `{"price": {"input": "1", "output": "1"}}`
	for targets, fault := range map[string]bool{
		`{"t": {"models": {"m-1": {}, "m-2": ` + price + `}}}`:                               false,
		`{"t": {"models": {"m-1": {}, "m-2": {"name": "x"}}}}`:                               true,
		`{"t": {"models": {"m-2": ` + price + `}}, "u": {"models": {"m-2": {}}}}`:            true,
		`{"t": {"models": {"m-2": ` + price + `}}, "u": {"models": {"m-2": ` + price + `}}}`: false,
		`{"t": {"models": {"m-2": ` + price + `}}, "u": {}}`:                                 true,
	} {
		_, err := Parse([]byte(doc("targets", targets, "limits", limit)), env)
		if (err != nil) != fault || err != nil && !strings.HasPrefix(err.Error(), "limits[0].count: found cost, and unpriced models: m-2;") {
			t.Errorf("%s: %v", targets, err)
		}
	}
}

// All faults of all sections come at once, in the order of the document.
// TestShardsNeedAnOrg also says which limits live in an org's shard: those of names that are an org's own.
func TestShardsNeedAnOrg(t *testing.T) {
	sharded := `{"cluster": "b", "shard": "org"}`
	_, err := Parse([]byte(doc("store", sharded, "identity", `{"tenant": {"value": "a"}}`, "limits", `[]`)), nil)
	if want := `store.shard: found "org"; want none, or an identity named org, whose value names the shard`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	limit := func(by string) string {
		return `{"name": "` + strings.ReplaceAll(by, `", "`, ".") + `", "by": ["` + by + `"], "count": "requests", "bucket": {"rate": "1/s", "burst": 9}}`
	}
	c := parse(t, doc("store", sharded, "identity", `{"tenant": {"value": "a"}, "user": {"value": "a"}, "org": {"value": "a"}, "team": {"value": "a"}, "key": {"value": "a"}}`,
		"limits", `[`+strings.Join([]string{limit("org"), limit("tenant"), limit("team"), limit("key"), limit(`model", "key`), limit("user"), limit("model"), limit(`target", "model`)}, ",")+`]`))
	if c.Org != 2 {
		t.Errorf("the org is identity %d", c.Org)
	}
	for i, l := range c.Limits {
		if l.OfOrg != (i < 5) {
			t.Errorf("%s: of the org: %v", l.Name, l.OfOrg)
		}
	}
	for _, l := range parse(t, doc()).Limits {
		if l.OfOrg {
			t.Errorf("%s is of an org where nothing is sharded", l.Name)
		}
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	_, err := Parse([]byte(`{
		"limits": [{"name": "a", "by": ["nobody"], "count": "tokens", "bucket": {"rate": "x", "burst": 5}}],
		"models": {"m": {"context": -1}},
		"identity": {"org": {"value": ""}},
		"store": {"cluster": 7},
		"version": 3
	}`), env)
	want := []string{"currency:", "limits[0].by[0]:", "limits[0].bucket.rate:", "models.m.context:", "identity.org.value:", "store.cluster:", "version:"}
	if err == nil {
		t.Fatal("no fault")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d faults:\n%v", len(lines), err)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("fault %d is %s, want %s", i, lines[i], want[i])
		}
	}
}
