package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/emmer-proxy/emmer/bucket/bridge"
)

// Redis' settings are looked at this often, sooner while nothing is known of them.
const (
	inspectEvery = time.Minute
	inspectAgain = 2 * time.Second
)

// inspect looks at Redis' settings until ctx ends, and says what changes.
func inspect(ctx context.Context, b *bridge.Bridge, m *metrics, log *slog.Logger) {
	said := "nothing"
	for {
		var fault *bridge.SettingError
		err := b.Inspect(ctx)
		next := inspectEvery
		switch {
		case errors.As(err, &fault):
			m.evicts.Set(1)
			if said != fault.Value {
				said = fault.Value
				log.Error("a setting of redis may lose limits", "setting", fault.Setting, "value", fault.Value, "error", fault.Error())
			}
		case err != nil:
			// The last word stands: a lost link says nothing of a setting.
			next = inspectAgain
			if said == "nothing" && ctx.Err() == nil {
				said = "unknown"
				log.Warn("cannot see redis' settings yet", "error", err.Error())
			}
		default:
			m.evicts.Set(0)
			if said != "nothing" && said != "" {
				log.Info("redis' settings keep limits")
			}
			said = ""
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}
