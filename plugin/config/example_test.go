package config_test

import (
	"fmt"

	"github.com/emmer-proxy/emmer/plugin/config"
)

func ExampleParse() {
	env := func(name string) (string, bool) { return "s3cret", name == "EMMER_STORE_TOKEN" }
	c, err := config.Parse([]byte(`{
		"version": 1,
		"currency": "EUR",
		"store": {"cluster": "emmer-bridge", "token": "${EMMER_STORE_TOKEN}"},
		"identity": {"tenant": {"jwt": ["payload", "tenant_id"]}},
		"models": {"gpt-4o": {"max_output": 16384, "price": {"input": "2.50", "output": "10.00"}}},
		"limits": [
			{"name": "tpm", "by": ["tenant"], "count": "tokens", "bucket": {"rate": "60000/m", "burst": 90000}},
			{"name": "month", "by": ["tenant"], "count": "cost", "max": "50",
			 "window": {"calendar": "month", "timezone": "Europe/Amsterdam"}}
		]
	}`), env)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range c.Limits {
		fmt.Println(l.Name, l.Rate, l.Per, l.Burst, "/", l.Max, l.Period, "/", l.Status)
	}
	// Output:
	// tpm 1 1 90000 / 0  / 429
	// month 0 0 0 / 50000000000 month@Europe/Amsterdam / 402
}

func ExampleFaults() {
	_, err := config.Parse([]byte(`{
		"version": 1,
		"currency": "EUR",
		"store": {"cluster": "emmer-bridge"},
		"models": {"gpt-4o": {}},
		"limits": [
			{"name": "tpm", "by": ["tenant"], "count": "tokens", "bucket": {"rate": "60k/m", "burst": 1.5e0}, "queue": {}},
			{"name": "month", "count": "cost", "max": "50", "window": {"calendar": "month"}}
		]
	}`), nil)
	fmt.Println(err)
	// Output:
	// limits[0].by[0]: found "tenant"; want one of target, model, provider, dialect
	// limits[0].bucket.rate: found "60k/m"; want a rate such as 60000/m, from 1 to 9007199254740991 per s, m, h or d
	// limits[0].bucket.burst: found 1.5e0; want a whole number from 1 to 9007199254740991
	// limits[0].queue: found classes, and no identity named class; want one time for all calls, such as 300s, or that identity
	// limits[1].count: found cost, and unpriced models: gpt-4o; want a price for each, or a for that leaves them out
}
