// Command demo plays a short story on this machine: a real Envoy with the filter, emmer-bridge on an
// embedded Redis, and a provider that makes its answers up. It shows who asked, what was reserved,
// what was admitted or refused and by which limit, what was settled, and what is left. Then it stays
// up, so that the calls can be tried by hand; with -once it ends after the story.
//
// The gateway is examples/envoy/envoy.yaml with its addresses replaced: what is seen here is what
// that file does.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/envoy"
	"github.com/emmer-proxy/emmer/hostsim/redisgw"
	"github.com/emmer-proxy/emmer/hostsim/upstream"
)

func main() {
	wasm := flag.String("wasm", "bin/emmer.wasm", "the filter")
	config := flag.String("envoy", "examples/envoy/envoy.yaml", "Envoy's configuration")
	once := flag.Bool("once", false, "end after the story")
	flag.Parse()
	if err := run(*wasm, *config, *once); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// house is all that runs.
type house struct {
	gateway  string // host:port
	bridge   *redisgw.Gateway
	provider *upstream.Server
	envoy    *envoy.Envoy
	log      string // path of the access log
	seen     int    // lines of it that were told
}

func run(wasm, config string, once bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	h := &house{}
	defer h.close()
	say("Starting a provider, emmer-bridge with an embedded Redis, and Envoy (it compiles the filter, which takes some seconds) ...")
	if err := h.start(ctx, wasm, config); err != nil {
		return err
	}
	if err := h.tell(ctx); err != nil {
		return err
	}
	if once {
		return nil
	}
	h.invite()
	<-ctx.Done()
	return nil
}

const bridgeToken, operatorToken = "demo-token", "demo-operator"

func (h *house) start(ctx context.Context, wasm, config string) error {
	wasm, err := filepath.Abs(wasm)
	if err != nil {
		return err
	}
	if _, err := os.Stat(wasm); err != nil {
		return fmt.Errorf("%w: run `make wasm` first", err)
	}
	script, err := upstream.Parse("demo", 1, providerScript, nil)
	if err != nil {
		return err
	}
	if h.provider, err = upstream.Start(script); err != nil {
		return err
	}
	if h.bridge, err = redisgw.Start(redisgw.Options{Listen: preferred("127.0.0.1:8080"), Token: bridgeToken, OperatorToken: operatorToken}); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "emmer-demo-")
	if err != nil {
		return err
	}
	h.log = filepath.Join(dir, "access.log")
	port := func(addr string) string {
		_, p, _ := net.SplitHostPort(addr)
		return "port_value: " + p
	}
	listen := preferred("127.0.0.1:10000")
	h.envoy, err = envoy.Start(ctx, envoy.Options{
		Dir: dir, BootstrapFile: config, Concurrency: 2,
		Replace: map[string]string{
			"port_value: 10000":     port(listen),
			"port_value: 9901":      "port_value: 0",
			"port_value: 9000":      port(h.provider.Addr()),
			"port_value: 8080":      port(h.bridge.Addr()),
			"/etc/envoy/emmer.wasm": wasm,
			"/dev/stdout":           h.log,
			"change-me":             bridgeToken,
			// The demo's embedded Redis is slow while everything starts on one machine.
			`"timeout": "50ms"`: `"timeout": "1s"`,
		},
	})
	if err != nil {
		return err
	}
	h.gateway = h.envoy.Addr("llm")
	return nil
}

func (h *house) close() {
	if h.envoy != nil {
		h.envoy.Stop()
	}
	if h.bridge != nil {
		h.bridge.Close()
	}
	if h.provider != nil {
		_ = h.provider.Close()
	}
	if h.log != "" {
		_ = os.RemoveAll(filepath.Dir(h.log))
	}
}

// preferred is the address if it is free, else one that is.
func preferred(addr string) string {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = l.Close()
	return addr
}

// awaitLine waits for the next line of the access log, which Envoy writes when a call is over.
func (h *house) awaitLine(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(h.log)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if lines := strings.SplitAfter(string(b), "\n"); h.seen < len(lines)-1 {
			h.seen++
			return strings.TrimSpace(lines[h.seen-1]), nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("the access log has no line %d", h.seen+1)
		case <-tick.C:
		}
	}
}

func (h *house) invite() {
	base := "http://" + h.gateway
	say("\nEverything stays up. Try it (ctrl-C ends it):\n")
	fmt.Printf("  curl -i %s/v1/chat/completions -H 'authorization: Bearer carol' -H 'x-team: red' \\\n    -H 'content-type: application/json' -d '{\"model\":\"gpt-4o-mini\",\"max_tokens\":300,\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}'\n", base)
	fmt.Printf("  curl -N %s/v1/chat/completions -H 'authorization: Bearer carol' -H 'x-team: red' \\\n    -H 'content-type: application/json' -d '{\"model\":\"gpt-4o-mini\",\"stream\":true,\"max_tokens\":300,\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}'\n", base)
	fmt.Printf("  curl %s/emmer/v1/kill -H 'authorization: Bearer %s' -d '{\"scope\":\"key\",\"id\":\"%s\",\"reason\":\"testing\",\"for\":\"1m\"}'\n", h.bridge.URL(), operatorToken, hashed("carol"))
	fmt.Printf("  curl %s/emmer/v1/resume -H 'authorization: Bearer %s' -d '{\"scope\":\"key\",\"id\":\"%s\"}'\n", h.bridge.URL(), operatorToken, hashed("carol"))
	fmt.Printf("  curl -s '%s/stats?filter=wasmcustom'\n", "http://"+h.envoy.Admin())
	fmt.Printf("  tail -f %s\n", h.log)
}

func say(text string) { fmt.Println(text) }

// hashed is a key as the filter names it where an identity says `hash: true`.
func hashed(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// euros writes nano-units of the currency, exactly.
func euros(nano int64) string {
	sign := ""
	if nano < 0 {
		sign, nano = "-", -nano
	}
	return fmt.Sprintf("%s%d.%s EUR", sign, nano/1e9, strings.TrimRight(fmt.Sprintf("%09d", nano%1e9), "0"))
}
