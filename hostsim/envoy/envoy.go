// Package envoy runs a real Envoy process on loopback for tests and demos: it writes the bootstrap,
// starts the binary, waits until it serves, and reads its listeners, counters and logs.
//
// It knows nothing of any plugin: what stands in a filter chain, and with which configuration, is
// the caller's. Every listener and the admin interface bind port 0, and the addresses are read back
// from Envoy, so that no two processes can race for a port.
//
// The caller calls Start with all listeners it will need (a plugin costs about five seconds of CPU
// at start, once per process, however many listeners share it), and Stop at the end.
package envoy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options say what to start. Either Listeners and Clusters or BootstrapFile is set.
type Options struct {
	Binary      string // "" = Find()
	Dir         string // for bootstrap and logs; "" = a temporary one, removed by Stop
	Concurrency int    // worker threads; 0 = 1
	Listeners   []Listener
	Clusters    []Cluster
	StatsTags   []StatsTag

	// BootstrapFile is a complete bootstrap in YAML or JSON to be used instead, after each key of
	// Replace was replaced by its value in its text. It must have an admin section.
	BootstrapFile string
	Replace       map[string]string

	LogLevel string        // "" = warning
	Timeout  time.Duration // until it serves; 0 = 90 s
}

// Envoy is a running process.
type Envoy struct {
	dir       string
	temporary bool
	admin     string
	addrs     map[string]string
	process   *os.Process
	done      chan struct{}
	exit      error
	stop      sync.Once
	client    *http.Client
}

// ErrExited says that the process ended before it served; the error carries the end of its log.
var ErrExited = errors.New("envoy exited")

// Start starts Envoy and returns once it serves.
func Start(ctx context.Context, o Options) (*Envoy, error) {
	binary := o.Binary
	if binary == "" {
		var err error
		if binary, err = Find(); err != nil {
			return nil, err
		}
	}
	e := &Envoy{
		dir:    o.Dir,
		addrs:  map[string]string{},
		done:   make(chan struct{}),
		client: &http.Client{Timeout: 20 * time.Second},
	}
	if e.dir == "" {
		dir, err := os.MkdirTemp("", "emmer-envoy-")
		if err != nil {
			return nil, fmt.Errorf("envoy: %w", err)
		}
		e.dir, e.temporary = dir, true
	}
	if err := e.start(ctx, o, binary); err != nil {
		e.Stop()
		return nil, err
	}
	return e, nil
}

func (e *Envoy) start(ctx context.Context, o Options, binary string) error {
	config, err := e.writeBootstrap(o)
	if err != nil {
		return err
	}
	level := o.LogLevel
	if level == "" {
		level = "warning"
	}
	addressPath := filepath.Join(e.dir, "admin.addr")
	os.Remove(addressPath)
	log, err := os.Create(e.logPath())
	if err != nil {
		return fmt.Errorf("envoy: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(binary,
		"--config-path", config,
		"--admin-address-path", addressPath,
		"--concurrency", strconv.Itoa(max(o.Concurrency, 1)),
		"--log-level", level,
		"--file-flush-interval-msec", "20",
		"--disable-hot-restart",
	)
	cmd.Stdout, cmd.Stderr = log, log
	if err := e.launch(cmd); err != nil {
		return fmt.Errorf("envoy: %w", err)
	}
	timeout := o.Timeout
	if timeout == 0 {
		timeout = 90 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := e.awaitReady(ctx, addressPath); err != nil {
		return fmt.Errorf("%w; the end of its log:\n%s", err, tail(e.Logs(), 40))
	}
	return e.readListeners()
}

// launch starts the process so that it dies with this one: its parent thread is kept alive by a
// goroutine of its own, for the death signal of Linux follows the thread, not the process.
func (e *Envoy) launch(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		dieWithParent(cmd)
		err := cmd.Start()
		started <- err
		if err == nil {
			e.exit = cmd.Wait()
			close(e.done)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	e.process = cmd.Process
	return nil
}

func (e *Envoy) awaitReady(ctx context.Context, addressPath string) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		if e.admin == "" {
			if b, err := os.ReadFile(addressPath); err == nil && strings.Contains(string(b), ":") {
				e.admin = strings.TrimSpace(string(b))
			}
		}
		if e.admin != "" {
			if body, err := e.get(ctx, "/ready"); err == nil && strings.HasPrefix(body, "LIVE") {
				return nil
			}
		}
		select {
		case <-poll.C:
		case <-e.done:
			return fmt.Errorf("%w: %v", ErrExited, e.exit)
		case <-ctx.Done():
			return fmt.Errorf("envoy: not ready: %w", ctx.Err())
		}
	}
}

// get asks the admin interface.
func (e *Envoy) get(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+e.admin+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != 200 {
		return "", fmt.Errorf("envoy: admin %s: %s: %s", path, resp.Status, strings.TrimSpace(string(b)))
	}
	return string(b), nil
}

func (e *Envoy) readListeners() error {
	body, err := e.get(context.Background(), "/listeners?format=json")
	if err != nil {
		return err
	}
	var list struct {
		Statuses []struct {
			Name  string `json:"name"`
			Local struct {
				Socket struct {
					Address string `json:"address"`
					Port    int    `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		return fmt.Errorf("envoy: listeners: %w", err)
	}
	for _, l := range list.Statuses {
		host := l.Local.Socket.Address
		if host == "0.0.0.0" {
			host = "127.0.0.1"
		}
		e.addrs[l.Name] = host + ":" + strconv.Itoa(l.Local.Socket.Port)
	}
	return nil
}

// Addr is the host and port of a listener, "" if there is none of that name.
func (e *Envoy) Addr(listener string) string { return e.addrs[listener] }

// Admin is the host and port of the admin interface.
func (e *Envoy) Admin() string { return e.admin }

// Pid is the id of the process.
func (e *Envoy) Pid() int { return e.process.Pid }

// Done is closed when the process has ended.
func (e *Envoy) Done() <-chan struct{} { return e.done }

// Stats returns counters and gauges by name; histograms are left out.
func (e *Envoy) Stats(ctx context.Context) (map[string]int64, error) {
	body, err := e.get(ctx, "/stats?type=All")
	if err != nil {
		return nil, err
	}
	return parseStats(body), nil
}

// wasmStat stands before the names of the counters that plugins define, as Envoy 1.40 shows them.
const wasmStat = "wasmcustom."

// Metrics returns the counters and gauges that plugins defined, by the names they gave them.
func (e *Envoy) Metrics(ctx context.Context) (map[string]int64, error) {
	stats, err := e.Stats(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for name, value := range stats {
		if own, ok := strings.CutPrefix(name, wasmStat); ok {
			out[own] = value
		}
	}
	return out, nil
}

func parseStats(body string) map[string]int64 {
	out := map[string]int64{}
	for line := range strings.Lines(body) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			out[name] = n
		}
	}
	return out
}

// AccessLog returns the lines written for a listener so far. Envoy writes them up to 20 ms late.
func (e *Envoy) AccessLog(listener string) []string {
	b, err := os.ReadFile(e.accessPath(listener))
	if err != nil {
		return nil
	}
	text := string(b)
	end := strings.LastIndexByte(text, '\n')
	if end < 0 {
		return nil
	}
	return strings.Split(text[:end], "\n")
}

// Logs returns what the process has logged so far.
func (e *Envoy) Logs() string {
	b, err := os.ReadFile(e.logPath())
	if err != nil {
		return ""
	}
	return string(b)
}

// Stop ends the process: politely, then after five seconds by force. It may be called twice.
func (e *Envoy) Stop() {
	e.stop.Do(func() {
		if e.process != nil {
			e.process.Signal(syscall.SIGTERM)
			patience := time.NewTimer(5 * time.Second)
			defer patience.Stop()
			select {
			case <-e.done:
			case <-patience.C:
				e.process.Kill()
				<-e.done
			}
		}
		e.client.CloseIdleConnections()
		if e.temporary {
			os.RemoveAll(e.dir)
		}
	})
}

func (e *Envoy) logPath() string { return filepath.Join(e.dir, "envoy.log") }

func (e *Envoy) accessPath(listener string) string {
	return filepath.Join(e.dir, "access-"+fileName(listener)+".log")
}

// fileName makes a name safe as part of a path.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, name)
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
