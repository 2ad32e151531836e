package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/envoy"
)

// token is the bridge's; everything is on loopback and lives as long as the benchmark.
const token = "bench-token"

// program is a process of ours, its output in a file of the benchmark's directory.
type program struct {
	name string
	log  string
	args []string
	env  []string
	cmd  *exec.Cmd
	done chan struct{}
}

func (p *program) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done = cmd, done
	go func() {
		// How it ended doesn't matter: the benchmark ends it, or finds it gone and shows its log.
		_ = cmd.Wait()
		close(done)
	}()
	return nil
}

// kill ends the process at once and waits for it. A stopped process dies too.
func (p *program) kill() {
	if p == nil || p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // fails only if it has ended
	<-p.done
}

func (p *program) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// await asks ready until it says so.
func (p *program) await(ctx context.Context, ready func() bool) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !ready() {
		select {
		case <-poll.C:
		case <-p.done:
			return fmt.Errorf("%s ended; its log:\n%s", p.name, p.output())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; its log:\n%s", p.name, ctx.Err(), p.output())
		}
	}
	return nil
}

func (p *program) output() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// stack is everything that a measurement runs on.
type stack struct {
	dir      string
	redis    *program
	bridge   *program
	upstream *upstream
	envoy    *envoy.Envoy

	redisSocket, bridgeAddr string
}

func startStack(ctx context.Context, o Options) (s *stack, err error) {
	s = &stack{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "emmer-bench-"); err != nil {
		return s, err
	}
	if s.upstream, err = startUpstream("application/json", []byte(chatAnswer)); err != nil {
		return s, err
	}
	s.redisSocket = filepath.Join(s.dir, "redis.sock")
	s.redis = &program{name: "redis", log: filepath.Join(s.dir, "redis.log"), args: []string{
		o.Redis, "--port", "0", "--unixsocket", s.redisSocket, "--save", "", "--appendonly", "no", "--dir", s.dir,
	}}
	if err = s.startRedis(ctx); err != nil {
		return s, err
	}
	if s.bridgeAddr, err = freeAddr(); err != nil {
		return s, err
	}
	s.bridge = &program{name: "emmer-bridge", log: filepath.Join(s.dir, "bridge.log"),
		args: []string{o.Bridge, "-listen", s.bridgeAddr, "-redis", s.redisSocket},
		env:  []string{"EMMER_BRIDGE_TOKENS=" + token},
	}
	if err = s.startBridge(ctx); err != nil {
		return s, err
	}
	s.envoy, err = envoy.Start(ctx, envoy.Options{
		Concurrency: o.Workers,
		Listeners:   listeners(o),
		Clusters: []envoy.Cluster{
			{Name: "upstream", Addr: s.upstream.addr()},
			{Name: "emmer-bridge", Addr: s.bridgeAddr},
		},
	})
	return s, err
}

func (s *stack) startRedis(ctx context.Context) error {
	_ = os.Remove(s.redisSocket) // a killed Redis leaves it behind
	if err := s.redis.start(); err != nil {
		return err
	}
	return s.redis.await(ctx, func() bool {
		conn, err := net.Dial("unix", s.redisSocket)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

func (s *stack) startBridge(ctx context.Context) error {
	if err := s.bridge.start(); err != nil {
		return err
	}
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	return s.bridge.await(ctx, func() bool {
		answer, err := client.Get("http://" + s.bridgeAddr + "/readyz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

func (s *stack) close() error {
	if s.envoy != nil {
		s.envoy.Stop()
	}
	s.bridge.kill()
	s.redis.kill()
	var err error
	if s.upstream != nil {
		err = s.upstream.close()
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// freeAddr is an address that was free a moment ago; the bridge is told where to listen.
func freeAddr() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// listeners is one for bare Envoy, and one for each system and way to hold.
func listeners(o Options) []envoy.Listener {
	routes := []envoy.Route{{Cluster: "upstream"}}
	list := []envoy.Listener{{Name: Bare, Routes: routes}}
	for _, hold := range o.Holds {
		floor := envoy.Wasm{File: o.Floor, VMID: "floor", Config: []byte(hold + " emmer-bridge " + token)}
		filter := envoy.Wasm{File: o.Filter, VMID: "emmer", Config: o.Configs[hold], Env: map[string]string{o.TokenEnv: token}}
		list = append(list,
			envoy.Listener{Name: Floor + "-" + hold, Routes: routes, Filters: entries(floor, hold)},
			envoy.Listener{Name: Filter + "-" + hold, Routes: routes, Filters: entries(filter, hold)},
		)
	}
	return list
}

// entries puts a module into a chain: twice for the pair, once with the flag.
func entries(w envoy.Wasm, hold string) []envoy.Filter {
	entry, gate := w, w
	entry.Name, entry.RootID = "emmer", "emmer"
	gate.Name, gate.RootID = "emmer.gate", "emmer.gate"
	if hold == "flag" {
		entry.AllowOnHeadersStop = true
		return []envoy.Filter{{Wasm: &entry}}
	}
	return []envoy.Filter{{Wasm: &entry}, {Wasm: &gate}}
}
