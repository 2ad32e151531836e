package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket/buckettest"
)

// asProgram makes this test binary be emmer-bridge.
const asProgram = "EMMER_BRIDGE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program is a running emmer-bridge.
type program struct {
	t   *testing.T
	cmd *exec.Cmd
	url string

	probes string // URL, with -probes
	done   chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

func start(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	p := &program{t: t, done: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0], append([]string{"-listen", "127.0.0.1:0"}, args...)...)
	p.cmd.Env = append(append(os.Environ(), asProgram+"=1", "EMMER_BRIDGE_TOKENS=one,two", "EMMER_BRIDGE_OPERATORS=ann=ann-token"), env...)
	out, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listen := make(chan string, 1)
	go func() {
		defer close(p.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.mu.Lock()
			p.log.Write(append(lines.Bytes(), '\n'))
			p.mu.Unlock()
			var line struct{ Msg, Listen, Probes string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				p.probes = "http://" + line.Probes
				listen <- line.Listen
			}
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	select {
	case addr := <-listen:
		p.url = "http://" + addr
	case <-p.done:
		t.Fatalf("did not start:\n%s", p.logged())
	case <-time.After(20 * time.Second):
		t.Fatalf("does not serve:\n%s", p.logged())
	}
	return p
}

func (p *program) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *program) ask(method, path, token, body string) (int, string) {
	p.t.Helper()
	r, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Errorf("%s: %v\n%s", path, err, p.logged())
		return 0, ""
	}
	defer func() { _ = w.Body.Close() }()
	b, err := io.ReadAll(w.Body)
	if err != nil {
		p.t.Error(err)
	}
	return w.StatusCode, string(b)
}

func (p *program) want(method, path, token, body string, status int, begins string) {
	p.t.Helper()
	if got, text := p.ask(method, path, token, body); got != status || !strings.HasPrefix(text, begins) {
		p.t.Errorf("%s %s: got %d %.300s, want %d %s", path, body, got, text, status, begins)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("never: %s", what)
		}
	}
}

// TestDrainFinishesWhatIsInFlight sends SIGTERM while a command waits for a stopped Redis.
func TestDrainFinishesWhatIsInFlight(t *testing.T) {
	r := buckettest.StartServer(t)
	p := start(t, nil, "-redis", r.Addr(), "-timeout", "10s", "-drain", "400ms")
	p.want("POST", "/", "two", `["PING"]`, 200, `{"result":"PONG"}`)
	p.want("GET", "/readyz", "", "", 200, `{"result":"OK"}`)
	r.Pause()
	answered := make(chan string, 1)
	go func() {
		_, body := p.ask("POST", "/", "one", `["EVAL","return redis.call('INCR','n')","1","n"]`)
		answered <- body
	}()
	eventually(t, "in flight", func() bool {
		_, body := p.ask("GET", "/metrics", "", "")
		return strings.Contains(body, "\nemmer_bridge_in_flight 1\n")
	})
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "drains", func() bool { return strings.Contains(p.logged(), `"msg":"draining"`) })
	p.want("GET", "/readyz", "", "", 503, `{"error":"DRAINING `)
	p.want("GET", "/healthz", "", "", 200, `{"result":"OK"}`)
	// Once the port is closed, only the command in flight is left to wait for.
	eventually(t, "accepts no more", func() bool {
		w, err := http.Get(p.url + "/healthz")
		if err == nil {
			_ = w.Body.Close()
		}
		return err != nil
	})
	select {
	case <-p.done:
		t.Fatalf("ended with a command in flight:\n%s", p.logged())
	default:
	}
	r.Resume()
	if body := <-answered; body != `{"result":1}` {
		t.Errorf("in flight: %s", body)
	}
	<-p.done
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.logged())
	}
	for _, line := range strings.Split(strings.TrimSpace(p.logged()), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("not a line of JSON: %s", line)
		}
	}
	if strings.Contains(p.logged(), "ann-token") {
		t.Error("a token was logged")
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	p := start(t, nil, "-redis", buckettest.StartRedis(t), "-drain", "1h")
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	eventually(t, "drains", func() bool { return strings.Contains(p.logged(), `"msg":"draining"`) })
	eventually(t, "ends", func() bool {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	})
	if p.cmd.ProcessState.Success() {
		t.Error("exit code 0")
	}
}

func TestMetrics(t *testing.T) {
	r := buckettest.StartServer(t)
	p := start(t, nil, "-redis", r.Addr(), "-timeout", "1s", "-allow", "EVAL,EVALSHA,PING,GET")
	p.want("POST", "/", "one", `["GET","none"]`, 200, `{"result":null}`)
	p.want("POST", "/", "one", `["EVALSHA","00","0"]`, 400, `{"error":"NOSCRIPT `)
	p.want("POST", "/", "one", `["EVAL","return redis.error_reply('WEIRD x')","0"]`, 400, `{"error":"WEIRD `)
	p.want("POST", "/", "one", `["HGETALL","h"]`, 403, `{"error":"FORBIDDEN `)
	p.want("POST", "/pipeline", "one", `[["PING"],["PING"]]`, 200, `[{"result":"PONG"}`)
	p.want("POST", "/", "none", `["PING"]`, 401, `{"error":"UNAUTHORIZED `)
	r.Kill()
	p.want("POST", "/", "one", `["PING"]`, 503, `{"error":"NOLINK `)
	_, body := p.ask("GET", "/metrics", "", "")
	for _, line := range []string{
		`emmer_bridge_requests_total{code="200",route="command"} 1`,
		`emmer_bridge_requests_total{code="400",route="command"} 2`,
		`emmer_bridge_requests_total{code="401",route="command"} 1`,
		`emmer_bridge_requests_total{code="403",route="command"} 1`,
		`emmer_bridge_requests_total{code="503",route="command"} 1`,
		`emmer_bridge_requests_total{code="200",route="pipeline"} 1`,
		`emmer_bridge_redis_faults_total{word="NOSCRIPT"} 1`,
		`emmer_bridge_redis_faults_total{word="other"} 1`,
		`emmer_bridge_redis_faults_total{word="NOLINK"} 1`,
		`emmer_bridge_refused_total{word="FORBIDDEN"} 1`,
		`emmer_bridge_refused_total{word="UNAUTHORIZED"} 1`,
		`emmer_bridge_redis_connections{state="used"} 0`,
		`emmer_bridge_redis_may_evict 0`,
		`emmer_bridge_redis_seconds_count 6`,
		`emmer_bridge_in_flight 0`,
		`process_start_time_seconds `,
	} {
		if !strings.Contains(body, "\n"+line) {
			t.Errorf("metrics lack %s", line)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

func TestWrongSettings(t *testing.T) {
	none := func(string) string { return "" }
	for _, x := range []struct {
		name string
		args []string
		env  map[string]string
		want []string
	}{
		{"no token", nil, nil, []string{"EMMER_BRIDGE_TOKENS: holds no token"}},
		{"several", []string{"-timeout", "0", "rest"}, map[string]string{"EMMER_BRIDGE_OPERATORS": "secret-token", "EMMER_BRIDGE_MAX_BODY": "much"},
			[]string{"TOKENS", "OPERATORS: entry 1", "MAX_BODY", `argument "rest"`, "timeout"}},
		{"allow", []string{"-allow", "EVAL,SELECT"}, map[string]string{"EMMER_BRIDGE_TOKENS": "x"}, []string{"SELECT"}},
		{"modes", []string{"-cluster", "-sentinel", "m"}, map[string]string{"EMMER_BRIDGE_TOKENS": "x"}, []string{"exclude"}},
		{"tls", []string{"-tls-ca", "f"}, map[string]string{"EMMER_BRIDGE_TOKENS": "x"}, []string{"need -tls"}},
		{"listener", []string{"-listen-cert", "f", "-max-connections", "0"}, map[string]string{"EMMER_BRIDGE_TOKENS": "x"}, []string{"listen-key", "max-connections"}},
		{"acl without a password", []string{"-print-acl"}, nil, []string{"EMMER_BRIDGE_REDIS_PASSWORD"}},
		{"bodies", []string{"-max-bodies", "10"}, map[string]string{"EMMER_BRIDGE_TOKENS": "x"}, []string{"max bodies"}},
		{"tls files", []string{"-tls", "-tls-ca", "no-such-file"}, map[string]string{"EMMER_BRIDGE_TOKENS": "x"}, []string{"tls-ca: "}},
		{"flag", []string{"-token", "x"}, nil, []string{"not defined"}},
	} {
		env := none
		if x.env != nil {
			env = func(k string) string { return x.env[k] }
		}
		var out bytes.Buffer
		if code := run(context.Background(), nil, x.args, env, &out, &out); code != 2 {
			t.Errorf("%s: exit code %d", x.name, code)
		}
		for _, w := range x.want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: %q is not in:\n%s", x.name, w, out.String())
			}
		}
		if strings.Contains(out.String(), "secret-token") {
			t.Errorf("%s: a token is printed:\n%s", x.name, out.String())
		}
	}
	var out bytes.Buffer
	if code := run(context.Background(), nil, []string{"-help"}, none, &out, &out); code != 0 || !strings.Contains(out.String(), "-sentinel name") || !strings.Contains(out.String(), "EMMER_BRIDGE_OPERATORS ") {
		t.Errorf("help: %d %s", code, out.String())
	}
}

func TestEnvironmentSetsFlagsAndFlagsWin(t *testing.T) {
	env := map[string]string{"EMMER_BRIDGE_TOKENS": "a b,c", "EMMER_BRIDGE_REDIS": "h:1,h:2", "EMMER_BRIDGE_MAX_IN_FLIGHT": "7",
		"EMMER_BRIDGE_CLUSTER": "true", "EMMER_BRIDGE_NAMESPACE": "env", "EMMER_BRIDGE_REDIS_PASSWORD": "p"}
	s, err := readSettings([]string{"-namespace", "flag"}, func(k string) string { return env[k] }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.bridge.Tokens) != 3 || len(s.redis.Addrs) != 2 || s.bridge.MaxInFlight != 7 || !s.redis.Cluster || s.bridge.Namespace != "flag" || s.redis.Password != "p" {
		t.Errorf("%+v", s)
	}
}
