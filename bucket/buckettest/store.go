// Package buckettest is what every store of limits must do, as one suite of tests: Run. The pure
// model passes it, and so do the scripts on an embedded Redis, on a real one and on a Cluster.
//
// It also starts real Redis servers for tests of other rooms (StartRedis). It knows no HTTP and no
// configuration. Only tests import it.
package buckettest

import (
	"errors"
	"sync"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
)

// Store is what the suite asks. An error says that there was no answer, or a fault of the request.
type Store interface {
	Reserve(bucket.ReserveRequest) (bucket.ReserveReply, error)
	Settle(bucket.SettleRequest) (bucket.SettleReply, error)
	Renew(bucket.RenewRequest) (bucket.RenewReply, error)
	Extend(bucket.ExtendRequest) (bucket.ExtendReply, error)
	Level(bucket.Limit) (script.Level, error)
	SetKill(scopeID string, until bucket.Millis, actor, reason string) error
	Resume(scopeID string) error
	// Kill is a flag's value, or "".
	Kill(scopeID string) (string, error)
	// SetOverride sets a value for an entity of a limit; "" removes it.
	SetOverride(limit, entity, value string) error
	// Now is the store's clock.
	Now() bucket.Millis
	// Pass lets at least d go by: it moves a driven clock, and waits for a real one.
	Pass(d bucket.Millis)
}

// Model is the reference as a Store, with a driven clock.
type Model struct {
	mu   sync.Mutex
	m    *bucket.Model
	time bucket.Millis
}

var errFault = errors.New("fault of the request")

// Epoch is when driven clocks begin.
const Epoch bucket.Millis = 1_924_000_000_000

// NewModel begins at Epoch.
func NewModel() *Model {
	m := &Model{m: bucket.NewModel(), time: Epoch}
	m.m.WithOverrides = true
	return m
}

func (m *Model) overridable(on bool) { m.m.WithOverrides = on }

// Reserve implements Store.
func (m *Model) Reserve(r bucket.ReserveRequest) (bucket.ReserveReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := m.m.Reserve(m.time, r)
	if reply.Outcome == 0 {
		return bucket.ReserveReply{}, errFault
	}
	return reply, nil
}

// Settle implements Store.
func (m *Model) Settle(r bucket.SettleRequest) (bucket.SettleReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := m.m.Settle(m.time, r)
	if reply.Outcome == 0 {
		return bucket.SettleReply{}, errFault
	}
	return reply, nil
}

// Renew implements Store.
func (m *Model) Renew(r bucket.RenewRequest) (bucket.RenewReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := m.m.Renew(m.time, r)
	if reply.Outcome == 0 {
		return bucket.RenewReply{}, errFault
	}
	return reply, nil
}

// Extend implements Store.
func (m *Model) Extend(r bucket.ExtendRequest) (bucket.ExtendReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := m.m.Extend(m.time, r)
	if reply.Outcome == 0 {
		return bucket.ExtendReply{}, errFault
	}
	return reply, nil
}

// Level implements Store.
func (m *Model) Level(l bucket.Limit) (script.Level, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return script.Level{Remaining: m.m.Level(m.time, l), Reserved: m.m.Reserved(m.time, l), Now: m.m.Clock(m.time, l)}, nil
}

// SetKill implements Store.
func (m *Model) SetKill(scopeID string, until bucket.Millis, actor, reason string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.m.SetKill(scopeID, until, actor, reason)
	return nil
}

// Resume implements Store.
func (m *Model) Resume(scopeID string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.m.Resume(scopeID)
	return nil
}

// Kill implements Store.
func (m *Model) Kill(scopeID string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.m.Kill(scopeID), nil
}

// SetOverride implements Store.
func (m *Model) SetOverride(limit, entity, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.m.SetOverride(limit, entity, value)
	return nil
}

// Now implements Store.
func (m *Model) Now() bucket.Millis {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.time
}

// Pass implements Store.
func (m *Model) Pass(d bucket.Millis) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.time += d
}

// SetTime moves the clock, back too.
func (m *Model) SetTime(at bucket.Millis) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.time = at
}
