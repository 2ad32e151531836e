package scenario

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/envoy"
	"github.com/emmer-proxy/emmer/hostsim/redisgw"
	"github.com/emmer-proxy/emmer/hostsim/upstream"
)

// targetHeader chooses the upstream of a request, by the name behind the dot of its script.
const targetHeader = "x-emmer-target"

const operatorToken = "scenario-operator"

// world is one scenario in one mode: everything around the gateway, and what the client holds.
type world struct {
	s         *Scenario
	mode      string
	name      string // of the door
	namespace string
	options   *Options

	upstreams map[string]*upstream.Server
	bridge    *redisgw.Gateway
	config    []byte
	tokens    map[string]string
	identity  *identity // of the gateways' TLS; nil without
	gateways  []gateway

	exchanges map[string]*exchange
	h1        map[string]*h1Conn
	h2        map[string]*h2Conn
	strays    []interface{ hangUp() }
	before    map[string]int64 // counters when the scenario began
	asked     int              // script calls of the bridge when it began
	updates   *updates
}

func (c *h1Conn) hangUp() { c.close(false) }
func (c *h2Conn) hangUp() { c.close() }

// newWorld starts upstreams and bridge. close it even after an error.
func newWorld(s *Scenario, mode string, o *Options) (*world, error) {
	w := &world{
		s: s, mode: mode, name: s.Name + "/" + mode, options: o,
		upstreams: map[string]*upstream.Server{},
		tokens:    map[string]string{},
		exchanges: map[string]*exchange{},
		h1:        map[string]*h1Conn{},
		h2:        map[string]*h2Conn{},
	}
	var salt [6]byte
	rand.Read(salt[:])
	w.namespace = "s-" + hex.EncodeToString(salt[:])
	if s.Settings.TLS {
		var err error
		if w.identity, err = ownIdentity(); err != nil {
			return w, err
		}
	}
	for name, script := range s.upstreams {
		u, err := upstream.Start(script)
		if err != nil {
			return w, err
		}
		w.upstreams[name] = u
	}
	ro := redisgw.Options{
		Token: BridgeToken, OperatorToken: operatorToken, Namespace: w.namespace,
		Timeout: s.Settings.BridgeTimeout,
	}
	if !s.embedded() {
		ro.RedisAddr = o.Redis
	}
	if s.Settings.Clock == "frozen" {
		ro.Start = time.Now()
	}
	bridge, err := redisgw.Start(ro)
	if err != nil {
		return w, err
	}
	w.bridge = bridge
	for name, claims := range s.Settings.Tokens {
		good, err := sign(s.Settings.JWT.Secret, claims)
		if err != nil {
			return w, fmt.Errorf("%s: tokens.%s: %w", s.Path, name, err)
		}
		bad, err := sign(s.Settings.JWT.Secret+"!", claims)
		if err != nil {
			return w, err
		}
		w.tokens[name], w.tokens[name+".forged"] = good, bad
	}
	if raw, ok := s.file(fileRawConfig); ok {
		w.config = []byte(strings.TrimSpace(w.expand(raw)))
		return w, nil
	}
	w.config, err = MergeConfig(w.expand(o.Defaults), w.expand(string(s.config)))
	if err != nil {
		return w, fmt.Errorf("%s: %s: %w", s.Path, fileConfig, err)
	}
	return w, nil
}

func (w *world) bridgeCluster() string { return "bridge." + w.namespace }

func (w *world) targetCluster(target string) string {
	if target == "" {
		return "upstream." + w.namespace
	}
	return "upstream." + w.namespace + "." + target
}

// door is what this world needs of a gateway.
func (w *world) door() door {
	set := w.s.Settings
	d := door{
		name: w.name, entries: w.options.Modes[w.mode], config: w.config, between: set.Between,
		identity: w.identity, jwt: set.JWT, bufferLimit: set.BufferLimit, idleTimeout: set.IdleTimeout,
	}
	if set.Closer {
		d.network = w.options.Network
	}
	bridge := envoy.Cluster{Name: w.bridgeCluster(), Addr: w.bridge.Addr(), HTTP2: set.HTTP2Bridge}
	if set.Bridge == "none" {
		bridge.Addr = ""
	}
	d.clusters = append(d.clusters, bridge)
	add := func(target, addr string) {
		d.clusters = append(d.clusters, envoy.Cluster{Name: w.targetCluster(target), Addr: addr, HTTP2: set.HTTP2Upstream})
		if target != "" {
			d.routes = append(d.routes, envoy.Route{Header: targetHeader, Value: target, Cluster: w.targetCluster(target)})
		}
	}
	for _, target := range w.s.targets() {
		add(target, w.upstreams[target].Addr())
	}
	for _, target := range set.NoHost {
		add(target, "")
	}
	add("", w.upstreams[""].Addr())
	d.routes = append(d.routes, envoy.Route{Cluster: w.targetCluster("")})
	return d
}

func (w *world) close() {
	for _, c := range w.h1 {
		c.close(false)
	}
	for _, c := range w.h2 {
		c.close()
	}
	for _, c := range w.strays {
		c.hangUp()
	}
	if w.bridge != nil {
		w.bridge.Close()
	}
	for _, u := range w.upstreams {
		u.Close()
	}
}

var variable = regexp.MustCompile(`\$\{[A-Za-z0-9_.-]+\}`)

// expand replaces the variables of the runner; others stay for whom they are meant for.
func (w *world) expand(text string) string {
	if !strings.Contains(text, "${") {
		return text
	}
	return variable.ReplaceAllStringFunc(text, func(v string) string {
		if value, ok := w.variable(v[2 : len(v)-1]); ok {
			return value
		}
		return v
	})
}

func (w *world) variable(name string) (string, bool) {
	switch name {
	case "NAMESPACE":
		return w.namespace, true
	case "MODE":
		return w.mode, true
	case "BRIDGE":
		return w.bridgeCluster(), true
	case "TOKEN":
		return BridgeToken, true
	}
	kind, rest, _ := strings.Cut(name, ".")
	switch kind {
	case "token":
		value, ok := w.tokens[rest]
		return value, ok
	case "request":
		m, ok := w.s.requests[rest]
		if !ok {
			return "", false
		}
		return string(m.expand(w.expand).body), true
	case "body":
		x, ok := w.exchanges[rest]
		if !ok {
			return "", false
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		return string(x.body), true
	case "sent", "arrived":
		target, number := "", rest
		if dot := strings.LastIndexByte(rest, '.'); dot >= 0 {
			target, number = rest[:dot], rest[dot+1:]
		}
		r, err := w.arrival(target, number)
		if err != nil {
			return "", false
		}
		if kind == "sent" {
			return string(r.Sent), true
		}
		return string(r.Body), true
	}
	return "", false
}

// lastOne stands for the number of the latest request.
const lastOne = "last"

var errNotYet = errors.New("not there")

// arrival is the n-th request that an upstream saw.
func (w *world) arrival(target, number string) (upstream.Request, error) {
	u, ok := w.upstreams[target]
	if !ok {
		return upstream.Request{}, fmt.Errorf("no upstream %q", target)
	}
	all := u.Requests()
	n := len(all)
	if number != lastOne {
		var err error
		if n, err = strconv.Atoi(number); err != nil || n < 1 {
			return upstream.Request{}, fmt.Errorf("want a number from 1, found %q", number)
		}
	}
	if n == 0 || n > len(all) {
		return upstream.Request{}, errNotYet
	}
	return all[n-1], nil
}

func (w *world) env() Env {
	return Env{Redis: w.bridge.Client(), Namespace: w.namespace, Mode: w.mode, Config: w.config}
}

// begin notes what is counted before the first step.
func (w *world) begin(ctx context.Context) error {
	var err error
	if w.before, err = sum(ctx, w.gateways); err != nil {
		return err
	}
	if w.alone() {
		err = w.settleDown(ctx)
	}
	w.asked = w.callouts(nil)
	return err
}

// stillness is how long counters must not move before they are taken for still.
const stillness = 60 * time.Millisecond

// settleDown waits until counters stand still: the gateway may be busy with the end of what an earlier
// scenario began. Counters that never do are left as they are.
func (w *world) settleDown(ctx context.Context) error {
	limit := time.NewTimer(expectPatience)
	defer limit.Stop()
	poll := time.NewTicker(stillness)
	defer poll.Stop()
	for {
		select {
		case <-poll.C:
		case <-limit.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
		now, err := sum(ctx, w.gateways)
		if err != nil {
			return err
		}
		if maps.Equal(now, w.before) {
			return nil
		}
		w.before = now
	}
}

// callouts counts what the bridge was asked, without what a plugin polls: script calls, or the
// commands that are named. A script whose text Redis lacks is sent again by EVAL, and counted once.
func (w *world) callouts(names []string) int {
	if len(names) == 0 {
		return w.bridge.Commands("EVALSHA") - w.asked
	}
	return w.bridge.Commands(names...)
}
