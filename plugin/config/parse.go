package config

import (
	"slices"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

// Parse reads a configuration in JSON. Strings may hold ${NAME}, which env gives the value of. The
// error is of type Faults and has everything that is wrong.
func Parse(doc []byte, env func(string) (string, bool)) (*Compiled, error) {
	r := &reader{env: env}
	if r.env == nil {
		r.env = func(string) (string, bool) { return "", false }
	}
	root := r.document(doc)
	if root == nil {
		return nil, r.result()
	}
	c := r.compile(root)
	if err := r.result(); err != nil {
		return nil, err
	}
	return c, nil
}

const (
	topFields = "version currency store hold body lease failure identity routes models unknown_model targets limits kill park answer"
	topLater  = "stream cache breaker"
)

func (r *reader) compile(root *node) *Compiled {
	c := &Compiled{}
	if !r.object(root, topFields, topLater) {
		return c
	}
	if n := root.get("version"); n == nil {
		r.missing(root, "version", "1")
	} else if v, ok := parseWhole(n.raw); !ok || v != 1 {
		r.fault(n, "1")
	}
	r.currency(c, root)
	r.store(c, root)
	r.hold(c, root.get("hold"))
	r.body(c, root.get("body"))
	r.lease(c, root.get("lease"))
	r.failure(c, root.get("failure"))
	r.identities(c, root.get("identity"))
	r.shard(c, root)
	r.routes(c, root.get("routes"))
	r.models(c, root)
	r.targets(c, root.get("targets"))
	r.limits(c, root.get("limits"))
	r.kill(c, root.get("kill"))
	r.park(c, root.get("park"))
	r.answer(c, root.get("answer"))
	return c
}

// currency also fixes the unit that all money of the document is read in.
func (r *reader) currency(c *Compiled, root *node) {
	c.Currency = Currency{"USD", 1_000_000_000}
	n := root.get("currency")
	if n == nil {
		r.missing(root, "currency", "the ISO 4217 code that all prices are in, such as EUR")
		return
	}
	code := r.text(n, "", "an ISO 4217 code, such as EUR")
	if cur, ok := currency(code); ok {
		c.Currency = cur
	} else if code != "" {
		r.fault(n, "an ISO 4217 code, such as EUR")
	}
}

func (r *reader) store(c *Compiled, root *node) {
	c.Store = Store{Protocol: "upstash", Timeout: 50, Namespace: "emmer"}
	n := root.get("store")
	if n == nil {
		r.missing(root, "store", "an object with the cluster of the bridge to Redis")
		return
	}
	if !r.object(n, "cluster protocol token timeout namespace shard", "") {
		return
	}
	const wantCluster = "the name of the bridge's cluster, or {property: [...]}"
	switch v := n.get("cluster"); {
	case v == nil:
		r.missing(n, "cluster", wantCluster)
	case v.kind == kindObject:
		if !r.object(v, "property", "") {
			break
		}
		if p := v.get("property"); p == nil {
			r.missing(v, "property", "a list of names that lead to a property")
		} else {
			c.Store.ClusterProperty = r.path(p, 1, "a list of names that lead to a property")
		}
	default:
		c.Store.Cluster = r.text(v, "", wantCluster)
	}
	r.word(n.get("protocol"), "upstash", "webdis")
	if t := n.get("token"); t != nil {
		t.secret = true
		c.Store.Token = r.text(t, "", "the bridge's bearer token, without control characters, such as ${EMMER_STORE_TOKEN}")
	}
	c.Store.Timeout = r.duration(n.get("timeout"), 50, 1, 10_000)
	c.Store.Namespace = "emmer"
	if v := n.get("namespace"); v != nil {
		const want = "at most 32 of A-Z, a-z, 0-9, _ and -"
		if s := r.text(v, "", want); s != "" {
			if !plain(s) || len(s) > 32 {
				r.fault(v, want)
			}
			c.Store.Namespace = s
		}
	}
	c.Store.Shard = Shard(r.word(n.get("shard"), "none org", ""))
}

// shard finds the identity that names a call's shard.
func (r *reader) shard(c *Compiled, root *node) {
	if c.Store.Shard != ShardOrg {
		return
	}
	if c.Org = slices.IndexFunc(c.Identities, func(id Identity) bool { return id.Name == "org" }); c.Org < 0 {
		r.fault(root.get("store").get("shard"), "none, or an identity named org, whose value names the shard")
	}
}

func (r *reader) hold(c *Compiled, n *node) {
	if n == nil || !r.object(n, "mode mismatch", "") {
		return
	}
	c.Hold = HoldMode(r.word(n.get("mode"), "pair flag", ""))
	c.Mismatch = Mismatch(r.word(n.get("mismatch"), "deny pass", ""))
}

func (r *reader) body(c *Compiled, n *node) {
	c.Body = Body{Hold: 1 << 20, Depth: 256, CountExact: 1 << 20, Inflate: 8 << 20}
	if n == nil || !r.object(n, "hold inflate depth count_exact", "") {
		return
	}
	c.Body.Hold = r.size(n.get("hold"), 1<<20, 1<<10, 64<<20)
	c.Body.Inflate = r.size(n.get("inflate"), 8<<20, 1<<10, 64<<20)
	c.Body.CountExact = r.size(n.get("count_exact"), 1<<20, 1<<10, 64<<20)
	c.Body.Depth = int(r.count(n.get("depth"), 256, 8, dialect.MaxDepth))
}

func (r *reader) lease(c *Compiled, n *node) {
	c.Lease = Lease{For: 60_000, Keep: 15 * 60_000}
	if n != nil && r.object(n, "for keep", "") {
		c.Lease.For = r.duration(n.get("for"), 60_000, 1000, 3_600_000)
		c.Lease.Keep = r.duration(n.get("keep"), 15*60_000, 1000, 86_400_000)
	}
	c.Lease.Cell = cell(c.Lease.For)
}

// cell is a tenth of a lease: a limit holds one field for each cell with a deadline in it, so that
// there are at most about a dozen, and a lease is at most a tenth longer than it was meant.
func cell(lease bucket.Millis) bucket.Millis {
	return max(lease/10, 1)
}

func (r *reader) answer(c *Compiled, n *node) {
	c.Answer = Answer{ExactCost: true, Hold: 256 << 10, HoldFor: 300}
	if n == nil || !r.object(n, "exact_cost hold hold_for", "") {
		return
	}
	c.Answer.ExactCost = r.flag(n.get("exact_cost"), true)
	c.Answer.Hold = r.size(n.get("hold"), 256<<10, 1<<10, 16<<20)
	c.Answer.HoldFor = r.duration(n.get("hold_for"), 300, 10, 10_000)
}

func (r *reader) routes(c *Compiled, n *node) {
	if n != nil && r.object(n, "unknown background", "") {
		c.UnknownRoute = Unknown(r.word(n.get("unknown"), "deny pass", ""))
		c.Background = Unknown(r.word(n.get("background"), "deny pass", ""))
	}
}

func (r *reader) kill(c *Compiled, n *node) {
	c.KillPoll = 250
	if n != nil && r.object(n, "poll", "cut_streams") {
		c.KillPoll = r.duration(n.get("poll"), 250, 50, 60_000)
	}
}
