package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// level is how a limit stands for the entity that the values name.
func (s store) level(ctx context.Context, limit string, values map[string]string) (script.Level, error) {
	var none script.Level
	i := slices.IndexFunc(s.config.Limits, func(l *config.Limit) bool { return l.Name == limit })
	if i < 0 {
		return none, fmt.Errorf("no limit %q in the configuration", limit)
	}
	l := s.config.Limits[i]
	now, err := s.client.Time(ctx).Result()
	if err != nil {
		return none, err
	}
	c, err := script.Layout{Namespace: s.namespace, Tag: "g"}.
		Level(plan.StoreLimit(l, plan.EntityOf(l, values), bucket.Millis(now.UnixMilli())), "probe")
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

// records counts the reservations that are held, and those that were settled and are remembered.
func (s store) records(ctx context.Context) (held, settled int, err error) {
	iter := s.client.Scan(ctx, 0, s.namespace+":1:{g}:r:*", 1000).Iterator()
	for iter.Next(ctx) {
		v, err := s.client.Get(ctx, iter.Val()).Result()
		switch {
		case err == redis.Nil: // it ended between the two commands
		case err != nil:
			return 0, 0, err
		case strings.HasPrefix(v, "R"):
			held++
		default:
			settled++
		}
	}
	return held, settled, iter.Err()
}

// immortal lists the keys without a time to live that should have one: all but ctl.
func (s store) immortal(ctx context.Context) ([]string, error) {
	var out []string
	iter := s.client.Scan(ctx, 0, s.namespace+":*", 1000).Iterator()
	for iter.Next(ctx) {
		ttl, err := s.client.TTL(ctx, iter.Val()).Result()
		if err != nil {
			return nil, err
		}
		if ttl == -1 && !strings.HasSuffix(iter.Val(), ":ctl") {
			out = append(out, iter.Val())
		}
	}
	slices.Sort(out)
	return out, iter.Err()
}

// probes are what a scenario can ask of the store:
//
//	left LIMIT [name=value ...]       what is left of a limit for an entity
//	reserved LIMIT [name=value ...]   what live reservations hold of it
//	held, settled                     how many reservations there are of either kind
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
			values := map[string]string{}
			for _, a := range args[1:] {
				name, value, ok := strings.Cut(a, "=")
				if !ok {
					return "", fmt.Errorf("want name=value, found %q", a)
				}
				values[name] = value
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
	return map[string]scenario.Probe{
		"left":     level(func(l script.Level) bucket.Amount { return l.Remaining }),
		"reserved": level(func(l script.Level) bucket.Amount { return l.Reserved }),
		"held":     records(false),
		"settled":  records(true),
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
