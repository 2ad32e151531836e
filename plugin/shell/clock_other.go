//go:build !wasm

package shell

import (
	"time"

	"github.com/emmer-proxy/emmer/bucket"
)

func now() bucket.Millis { return bucket.Millis(time.Now().UnixMilli()) }
