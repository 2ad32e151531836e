package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
	"github.com/emmer-proxy/emmer/hostsim/scenario"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// store reads what stands in a namespace, past the bridge.
type store struct {
	client    redis.UniversalClient
	namespace string
	config    *config.Compiled
}

// layout is that of the shard in which a limit is kept for an entity.
func (s store) layout(l *config.Limit, values map[string]string) script.Layout {
	return script.Layout{Namespace: s.namespace, WithOverrides: true}.Of(plan.OrgOf(l, values))
}

func (s store) limit(name string) (*config.Limit, error) {
	i := slices.IndexFunc(s.config.Limits, func(l *config.Limit) bool { return l.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("no limit %q in the configuration", name)
	}
	return s.config.Limits[i], nil
}

// override sets one: a value as bucket.ParseOverride reads it, without its end, which is so long
// after the store's present, or never.
func (s store) override(ctx context.Context, limit, value string, stands time.Duration, values map[string]string) error {
	l, err := s.limit(limit)
	if err != nil {
		return err
	}
	until := int64(0)
	if stands > 0 {
		now, err := s.client.Time(ctx).Result()
		if err != nil {
			return err
		}
		until = now.Add(stands).UnixMilli()
	}
	field := script.OverrideField(l.Name, plan.EntityOf(l, values))
	return s.client.HSet(ctx, s.layout(l, values).Overrides(), field, value+"|"+strconv.FormatInt(until, 10)).Err()
}

// level is how a limit stands for the entity that the values name.
func (s store) level(ctx context.Context, limit string, values map[string]string) (script.Level, error) {
	var none script.Level
	l, err := s.limit(limit)
	if err != nil {
		return none, err
	}
	now, err := s.client.Time(ctx).Result()
	if err != nil {
		return none, err
	}
	asked := plan.StoreLimit(l, plan.EntityOf(l, values), bucket.Millis(now.UnixMilli()))
	asked.Share = values["class"]
	c, err := s.layout(l, values).Level(asked, "probe")
	if err != nil {
		return none, err
	}
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		args[i] = a
	}
	reply, err := s.client.Eval(ctx, c.Script.Text, c.Keys, args...).Slice()
	if err != nil {
		return none, err
	}
	var v []script.Value
	for _, e := range reply {
		switch e := e.(type) {
		case int64:
			v = append(v, script.Value{Int: e, IsInt: true})
		case string:
			v = append(v, script.Value{Text: e})
		}
	}
	return script.DecodeLevel(c, v)
}

// records counts the reservations that are held, and those that were settled and are remembered. One
// that touches two shards is one in each.
func (s store) records(ctx context.Context) (held, settled int, err error) {
	keys, err := s.keys(ctx, ":1:{*}:r:*")
	for _, key := range keys {
		v, err := s.client.Get(ctx, key).Result()
		switch {
		case err == redis.Nil: // it ended between the two commands
		case err != nil:
			return 0, 0, err
		case strings.HasPrefix(v, "R"), strings.HasPrefix(v, "Q"):
			held++
		default:
			settled++
		}
	}
	return held, settled, err
}

// keys lists what stands in the namespace, behind which pattern follows; of a Cluster on all nodes.
func (s store) keys(ctx context.Context, pattern string) (keys []string, err error) {
	scan := func(ctx context.Context, c *redis.Client) ([]string, error) {
		var keys []string
		iter := c.Scan(ctx, 0, s.namespace+pattern, 1000).Iterator()
		for iter.Next(ctx) {
			keys = append(keys, iter.Val())
		}
		return keys, iter.Err()
	}
	if one, ok := s.client.(*redis.Client); ok {
		return scan(ctx, one)
	}
	var mu sync.Mutex
	err = s.client.(*redis.ClusterClient).ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		some, err := scan(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, some...)
		return err
	})
	return keys, err
}

// limits counts the limits that have state, and says how long the longest of all keys is.
func (s store) limits(ctx context.Context) (n, longest int, err error) {
	keys, err := s.keys(ctx, ":*")
	for _, key := range keys {
		if strings.Contains(key, "}:l:") {
			n++
		}
		longest = max(longest, len(key)-len(s.namespace))
	}
	return n, longest, err
}

// immortal lists the keys without a time to live that should have one: all but kill flags and overrides.
func (s store) immortal(ctx context.Context) ([]string, error) {
	var out []string
	keys, err := s.keys(ctx, ":*")
	for _, key := range keys {
		ttl, err := s.client.TTL(ctx, key).Result()
		if err != nil {
			return nil, err
		}
		if ttl == -1 && !strings.HasSuffix(key, ":ctl") && !strings.HasSuffix(key, ":ovr") {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out, err
}

// named reads name=value.
func named(args []string) (map[string]string, error) {
	values := map[string]string{}
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		if !ok {
			return nil, fmt.Errorf("want name=value, found %q", a)
		}
		values[name] = value
	}
	return values, nil
}

// probes are what a scenario can ask of the store:
//
//	left LIMIT [name=value ...]       what is left of a limit for an entity, and for a class of a shared bucket
//	reserved LIMIT [name=value ...]   what live reservations hold of it
//	held, settled                     how many reservations there are of either kind
//	answers                           how many keys tell how long answers were
//	limits, longest                   how many limits have state, and bytes of the longest key behind the namespace
//	override LIMIT VALUE FOR [name=value ...]  sets an override for a time, 0 for ever; answers set
//	immortal                          keys that never end though they should
func probes() map[string]scenario.Probe {
	open := func(env scenario.Env) (store, error) {
		c, err := config.Parse(env.Config, func(string) (string, bool) { return scenario.BridgeToken, true })
		return store{env.Redis, env.Namespace, c}, err
	}
	level := func(pick func(script.Level) bucket.Amount) scenario.Probe {
		return func(ctx context.Context, env scenario.Env, args []string) (string, error) {
			s, err := open(env)
			if err != nil {
				return "", err
			}
			if len(args) == 0 {
				return "", fmt.Errorf("want the name of a limit")
			}
			values, err := named(args[1:])
			if err != nil {
				return "", err
			}
			l, err := s.level(ctx, args[0], values)
			return strconv.FormatInt(int64(pick(l)), 10), err
		}
	}
	records := func(settled bool) scenario.Probe {
		return func(ctx context.Context, env scenario.Env, _ []string) (string, error) {
			s, err := open(env)
			if err != nil {
				return "", err
			}
			h, n, err := s.records(ctx)
			if settled {
				h = n
			}
			return strconv.Itoa(h), err
		}
	}
	keys := func(pick func(n, longest int) int) scenario.Probe {
		return func(ctx context.Context, env scenario.Env, _ []string) (string, error) {
			s, err := open(env)
			if err != nil {
				return "", err
			}
			n, longest, err := s.limits(ctx)
			return strconv.Itoa(pick(n, longest)), err
		}
	}
	return map[string]scenario.Probe{
		"left":     level(func(l script.Level) bucket.Amount { return l.Remaining }),
		"reserved": level(func(l script.Level) bucket.Amount { return l.Reserved }),
		"held":     records(false),
		"settled":  records(true),
		"answers": func(ctx context.Context, env scenario.Env, _ []string) (string, error) {
			s, err := open(env)
			if err != nil {
				return "", err
			}
			found, err := s.keys(ctx, ":1:{*}:a:*")
			return strconv.Itoa(len(found)), err
		},
		"limits":  keys(func(n, _ int) int { return n }),
		"longest": keys(func(_, longest int) int { return longest }),
		"override": func(ctx context.Context, env scenario.Env, args []string) (string, error) {
			s, err := open(env)
			if err != nil {
				return "", err
			}
			if len(args) < 3 {
				return "", fmt.Errorf("want the name of a limit, a value and a time")
			}
			stands, err := time.ParseDuration(args[2])
			if err != nil {
				return "", err
			}
			values, err := named(args[3:])
			if err != nil {
				return "", err
			}
			return "set", s.override(ctx, args[0], args[1], stands, values)
		},
		"immortal": func(ctx context.Context, env scenario.Env, _ []string) (string, error) {
			s, err := open(env)
			if err != nil {
				return "", err
			}
			keys, err := s.immortal(ctx)
			return strings.Join(keys, " "), err
		},
	}
}
