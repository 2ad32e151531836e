// Package buckettest is what every store of limits must do, as one suite of tests: Run. The pure
// model passes it, and so do the scripts on an embedded Redis, on a real one and on a Cluster.
//
// It also starts real Redis servers for tests of other rooms (StartRedis). It knows no HTTP and no
// configuration. Only tests import it.
package buckettest

import (
	"errors"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
)

// Store is what the suite asks. An error says that there was no answer, or a fault of the request.
type Store interface {
	Reserve(bucket.ReserveRequest) (bucket.ReserveReply, error)
	Settle(bucket.SettleRequest) (bucket.SettleReply, error)
	Renew(bucket.RenewRequest) (bucket.RenewReply, error)
	Level(bucket.Limit) (script.Level, error)
	SetKill(scopeID string, until bucket.Millis, actor, reason string) error
	Resume(scopeID string) error
	// Now is the store's clock.
	Now() bucket.Millis
	// Pass lets at least d go by: it moves a driven clock, and waits for a real one.
	Pass(d bucket.Millis)
}

// Model is the reference as a Store, with a driven clock.
type Model struct {
	M    *bucket.Model
	Time bucket.Millis
}

var errFault = errors.New("fault of the request")

// Epoch is when driven clocks begin.
const Epoch bucket.Millis = 1_924_000_000_000

// NewModel begins at Epoch.
func NewModel() *Model { return &Model{bucket.NewModel(), Epoch} }

// Reserve implements Store.
func (m *Model) Reserve(r bucket.ReserveRequest) (bucket.ReserveReply, error) {
	reply := m.M.Reserve(m.Time, r)
	if reply.Outcome == 0 {
		return bucket.ReserveReply{}, errFault
	}
	return reply, nil
}

// Settle implements Store.
func (m *Model) Settle(r bucket.SettleRequest) (bucket.SettleReply, error) {
	reply := m.M.Settle(m.Time, r)
	if reply.Outcome == 0 {
		return bucket.SettleReply{}, errFault
	}
	return reply, nil
}

// Renew implements Store.
func (m *Model) Renew(r bucket.RenewRequest) (bucket.RenewReply, error) {
	reply := m.M.Renew(m.Time, r)
	if reply.Outcome == 0 {
		return bucket.RenewReply{}, errFault
	}
	return reply, nil
}

// Level implements Store.
func (m *Model) Level(l bucket.Limit) (script.Level, error) {
	return script.Level{Remaining: m.M.Level(m.Time, l), Reserved: m.M.Reserved(m.Time, l), Now: m.Time}, nil
}

// SetKill implements Store.
func (m *Model) SetKill(scopeID string, until bucket.Millis, actor, reason string) error {
	m.M.SetKill(scopeID, until, actor, reason)
	return nil
}

// Resume implements Store.
func (m *Model) Resume(scopeID string) error {
	m.M.Resume(scopeID)
	return nil
}

// Now implements Store.
func (m *Model) Now() bucket.Millis { return m.Time }

// Pass implements Store.
func (m *Model) Pass(d bucket.Millis) { m.Time += d }
