package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket/bridge"
	"github.com/emmer-proxy/emmer/bucket/buckettest"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks are the README's fenced blocks of one language.
func blocks(t *testing.T, language string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?\n)```\n").FindAllStringSubmatch(readme(t), -1) {
		all = append(all, m[1])
	}
	return all
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// TestReadmeCommands runs the README's commands in order, on other ports: the first goes on in the
// background.
func TestReadmeCommands(t *testing.T) {
	r := buckettest.StartServer(t)
	_, redisPort, _ := net.SplitHostPort(r.Addr())
	port := freePort(t)
	dir := t.TempDir()
	wrapper := "#!/bin/sh\nexec env " + asProgram + "=1 '" + os.Args[0] + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "emmer-bridge"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	ports := strings.NewReplacer("127.0.0.1:6379", r.Addr(), "-p 6379", "-p "+redisPort, "127.0.0.1:8080", "127.0.0.1:"+port)
	command := func(ctx context.Context, text string) (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", ports.Replace(text))
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "EMMER_BRIDGE_LISTEN=127.0.0.1:"+port)
		out := new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr = out, out
		return cmd, out
	}
	scripts := blocks(t, "sh")
	if len(scripts) < 3 {
		t.Fatalf("the README has %d blocks of commands", len(scripts))
	}
	server, log := command(context.Background(), scripts[0])
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		_ = server.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	eventually(t, "serves", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	for _, script := range scripts[1:] {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		cmd, out := command(ctx, script)
		if err := cmd.Run(); err != nil || out.Len() == 0 {
			t.Errorf("%v:\n%s\n%s", err, script, out)
		}
		cancel()
	}
	c := redis.NewClient(&redis.Options{Addr: r.Addr(), Username: "emmer", Password: "password", MaxRetries: -1})
	defer func() { _ = c.Close() }()
	if err := c.Ping(context.Background()).Err(); err != nil {
		t.Errorf("the user of -print-acl: %v", err)
	}
}

// TestReadmeSaysWhatIs compares the README's lists with the program.
func TestReadmeSaysWhatIs(t *testing.T) {
	acl := blocks(t, "acl")
	u := bridge.Users{Name: "emmer", Secret: ">password"}
	if len(acl) != 2 || acl[0] != u.Redis()+"\n" || acl[1] != u.Sentinel()+"\n" {
		t.Errorf("the users are\n%s\n%s\nthe README says\n%s", u.Redis(), u.Sentinel(), acl)
	}
	text := readme(t)
	column := func(pattern string) (found []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found = append(found, m[1])
		}
		slices.Sort(found)
		return slices.Compact(found)
	}

	m := newMetrics()
	c, err := bridge.Connect(bridge.Redis{Addrs: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	m.pool(c)
	m.certificate(time.Now)
	m.Request("other", 200)
	m.Refused("OVERLOAD")
	m.Redis(1, "TIMEOUT")
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "emmer_") {
			names = append(names, f.GetName())
		}
	}
	slices.Sort(names)
	if said := column("\n\\| `(emmer_\\w+)`"); !slices.Equal(names, said) {
		t.Errorf("the metrics are\n%v\nthe README says\n%v", names, said)
	}

	var words []string
	files, err := filepath.Glob("../../bridge/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range regexp.MustCompile(`refuse\(http\.\w+, "([A-Z]+)"`).FindAllSubmatch(source, -1) {
			words = append(words, string(x[1]))
		}
	}
	slices.Sort(words)
	words = slices.Compact(words)
	if _, list, ok := strings.Cut(text, "`emmer_bridge_refused_total` | `word` ("); !ok {
		t.Error("the README lacks the words of refusals")
	} else if list, _, _ := strings.Cut(list, ")"); list != strings.Join(words, ", ") {
		t.Errorf("the words are\n%v\nthe README says\n%s", words, list)
	}

	var help bytes.Buffer
	run(context.Background(), nil, []string{"-help"}, func(string) string { return "" }, &help, &help)
	for _, flag := range column("`-([a-z-]+)") {
		if !strings.Contains(help.String(), "\n  -"+flag+" ") && !strings.Contains(help.String(), "\n  -"+flag+"\n") && flag != "help" {
			t.Errorf("there is no flag -%s", flag)
		}
	}
}
