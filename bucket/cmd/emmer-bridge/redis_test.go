package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/buckettest"
	"github.com/emmer-proxy/emmer/bucket/script"
)

// printed is what -print-acl says, as arguments of commands.
func printed(t *testing.T, env map[string]string, args ...string) (all [][]any) {
	t.Helper()
	var out bytes.Buffer
	if code := run(context.Background(), nil, append(args, "-print-acl"), func(k string) string { return env[k] }, &out, &out); code != 0 {
		t.Fatal(out.String())
	}
	if strings.Contains(out.String(), "password") {
		t.Errorf("the password is printed: %s", out.String())
	}
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var list []any
		for _, f := range strings.Fields(line) {
			list = append(list, f)
		}
		all = append(all, list)
	}
	return all
}

// TestRedisUserIsEnough runs every script and verb as the user that the README shows and that
// -print-acl makes, on one server and on a Cluster, and what that user is to be kept from.
func TestRedisUserIsEnough(t *testing.T) {
	env := map[string]string{"EMMER_BRIDGE_REDIS_PASSWORD": "password"}
	ctx := context.Background()
	for _, cluster := range []bool{false, true} {
		name, args, settings := "server", []string{"-timeout", "2s"}, []string{}
		if cluster {
			name, args, settings = "cluster", append(args, "-cluster"), []string{"--cluster-enabled", "yes", "--cluster-port", freePort(t)}
		}
		t.Run(name, func(t *testing.T) {
			r := buckettest.StartServer(t, settings...)
			if cluster {
				if err := r.Client().ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
					t.Fatal(err)
				}
				eventually(t, "cluster is whole", func() bool {
					v, err := r.Client().ClusterInfo(ctx).Result()
					return err == nil && strings.Contains(v, "cluster_state:ok")
				})
			}
			if err := r.Client().Do(ctx, printed(t, env, args...)[0]...).Err(); err != nil {
				t.Fatal(err)
			}
			if err := r.Client().Do(ctx, "ACL", "SETUSER", "default", "-@all", "+acl").Err(); err != nil {
				t.Fatal(err)
			}
			p := start(t, []string{"EMMER_BRIDGE_REDIS_USERNAME=emmer", "EMMER_BRIDGE_REDIS_PASSWORD=password"}, append(args, "-redis", r.Addr())...)
			p.want("GET", "/readyz", "", "", 200, `{"result":"OK"}`)
			exchange(t, p)
			p.want("POST", "/emmer/v1/kill", "ann-token", `{"scope":"team","id":"a","reason":"r","for":"1ms"}`, 200, `{"result":`)
			p.want("POST", "/emmer/v1/kill", "ann-token", `{"scope":"team","id":"b","reason":"r"}`, 200, `{"result":`)
			eventually(t, "the ended flag is swept", func() bool {
				p.want("POST", "/emmer/v1/kill", "ann-token", `{"scope":"team","id":"c","reason":"r"}`, 200, `{"result":`)
				_, body := p.ask("GET", "/emmer/v1/kills", "ann-token", "")
				return strings.Count(body, `"scope"`) == 2
			})
			p.want("POST", "/emmer/v1/resume", "ann-token", `{"scope":"team","id":"b"}`, 200, `{"result":{"resumed":true}}`)
			p.want("POST", "/", "one", `["HGETALL","emmer:1:{g}:ctl"]`, 200, `{"result":["team:c",`)
			p.want("POST", "/", "one", `["HMGET","emmer:1:{g}:ctl","team:c"]`, 200, `{"result":["0|ann|r"]}`)

			// Overrides, which scripts read and operators will write.
			p.want("POST", "/", "one", `["EVAL","return redis.call('HSET',KEYS[1],'a|b','1|2')","1","emmer:1:{g}:ovr"]`, 200, `{"result":1}`)
			p.want("POST", "/", "one", `["EVAL","return redis.call('HDEL',KEYS[1],'a|b')","1","emmer:1:{g}:ovr"]`, 200, `{"result":1}`)
			eventually(t, "the settings are looked at", func() bool {
				_, body := p.ask("GET", "/metrics", "", "")
				return strings.Contains(body, "\nemmer_bridge_redis_may_evict 0\n") && !strings.Contains(p.logged(), "NOPERM")
			})

			p.want("POST", "/", "one", `["HGETALL","other"]`, 400, `{"error":"NOPERM `)
			p.want("POST", "/", "one", `["HGETALL","emmer:2:{g}:ctl"]`, 400, `{"error":"NOPERM `)
			p.want("POST", "/", "one", `["EVAL","return redis.call('GET',KEYS[1])","1","other"]`, 400, `{"error":"NOPERM `)
			as := redis.NewClient(&redis.Options{Addr: r.Addr(), Username: "emmer", Password: "password", MaxRetries: -1})
			defer func() { _ = as.Close() }()
			for _, command := range [][]any{
				{"GET", "other"}, {"SET", "emmer", "1"}, {"FLUSHALL"}, {"FLUSHDB"}, {"KEYS", "*"}, {"SCAN", "0"}, {"RANDOMKEY"}, {"DBSIZE"},
				{"CONFIG", "GET", "*"}, {"CONFIG", "SET", "maxmemory", "1"}, {"INFO"}, {"INFO", "all"}, {"PUBLISH", "c", "m"}, {"SUBSCRIBE", "c"}, {"ACL", "LIST"},
				{"SCRIPT", "FLUSH"}, {"SHUTDOWN"}, {"REPLICAOF", "h", "1"}, {"CLIENT", "LIST"}, {"MONITOR"}, {"SAVE"},
				{"CLUSTER", "NODES"}, {"EXPIRE", "emmer:1:{g}:ctl", "1"}, {"RENAME", "emmer:1:{g}:ctl", "x"},
			} {
				if err := as.Do(ctx, command...).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
					t.Errorf("%v: %v", command, err)
				}
				lua := "return redis.call(unpack(ARGV))"
				if err := as.Do(ctx, append([]any{"EVAL", lua, "0"}, command...)...).Err(); err == nil {
					t.Errorf("%v in a script is carried out", command)
				}
			}
		})
	}
}

// TestRedisUserKeepsTheContract holds Redis to the whole contract of package bucket, every kind of limit, as
// the user of the README. Only the namespace is another one for each case.
func TestRedisUserKeepsTheContract(t *testing.T) {
	r := buckettest.StartServer(t)
	admin := r.Client()
	buckettest.Run(t, func(t *testing.T) buckettest.Store {
		c := redis.NewClient(&redis.Options{Addr: r.Addr(), Username: "emmer", Password: "password", Protocol: 2, DisableIdentity: true, PoolSize: 8, MaxRetries: -1})
		t.Cleanup(func() { _ = c.Close() })
		s := buckettest.NewRedis(t, c)
		line := strings.Replace(blocks(t, "acl")[0], " ~emmer:", " ~"+s.Layout.Namespace+":", 1)
		var command []any
		for _, word := range strings.Fields(line) {
			command = append(command, word)
		}
		if err := admin.Do(context.Background(), command...).Err(); err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// exchange reserves, renews, extends, settles and looks, on a bucket and on a window, as the filter does.
func exchange(t *testing.T, p *program) {
	t.Helper()
	l := script.Layout{Namespace: "emmer", Tag: "g"}
	now := time.Now().UnixMilli()
	day := int64(24 * 3600 * 1000)
	limits := []bucket.Limit{
		{Name: "tpm", Entity: "k", Kind: bucket.TokenBucket, Rate: 1, Per: 1, Burst: 1000},
		{Name: "day", Period: "day", Entity: "k", Kind: bucket.CalendarWindow, Lost: bucket.Charge, Max: 1000,
			Bounds: [4]bucket.Millis{bucket.Millis(now - day), bucket.Millis(now - 1000), bucket.Millis(now + day), bucket.Millis(now + 2*day)}},
	}
	items := []bucket.Item{{Limit: limits[0], Amount: 100}, {Limit: limits[1], Amount: 100}}
	const lease, keep, cell = 60_000, 60_000, 1000
	c, err := l.Reserve(bucket.ReserveRequest{ID: "id", Lease: lease, Keep: keep, Cell: cell, Kills: []string{"team:x"}, Items: items}, "n1")
	reserved, err2 := script.DecodeReserve(c, p.run(c, err))
	if err2 != nil || reserved.Outcome != bucket.Granted {
		t.Errorf("reserve: %+v %v", reserved, err2)
	}
	c, err = l.Renew(bucket.RenewRequest{ID: "id", Lease: 2 * lease, Keep: keep, Cell: cell, Items: items}, "n2")
	if v, err := script.DecodeRenew(c, p.run(c, err)); err != nil || v.Outcome != bucket.Renewed {
		t.Errorf("renew: %+v %v", v, err)
	}
	items[0].Amount, items[1].Amount = 150, 150
	c, err = l.Extend(bucket.ExtendRequest{ID: "id", Lease: 2 * lease, Keep: keep, Cell: cell, Items: items}, "n5")
	if v, err := script.DecodeExtend(c, p.run(c, err)); err != nil || v.Outcome != bucket.Extended {
		t.Errorf("extend: %+v %v", v, err)
	}
	items[0].Amount, items[1].Amount = 0, 40
	c, err = l.Settle(bucket.SettleRequest{ID: "id", Deadline: reserved.Deadline, Lease: lease, Keep: keep, Cell: cell, Items: items}, "n3")
	if v, err := script.DecodeSettle(c, p.run(c, err)); err != nil || v.Outcome != bucket.SettledLive {
		t.Errorf("settle: %+v %v", v, err)
	}
	c, err = l.Level(limits[1], "n4")
	if v, err := script.DecodeLevel(c, p.run(c, err)); err != nil || v.Remaining != 960 || v.Reserved != 0 {
		t.Errorf("level: %+v %v", v, err)
	}
}

// run sends a script as the filter does: EVALSHA, which must answer NOSCRIPT, then EVAL.
func (p *program) run(c script.Call, err error) []script.Value {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	body := func(verb, text string) string {
		list := []any{verb, text, len(c.Keys)}
		for _, a := range append(append([]string{}, c.Keys...), c.Args...) {
			list = append(list, a)
		}
		b, err := json.Marshal(list)
		if err != nil {
			p.t.Fatal(err)
		}
		return string(b)
	}
	p.want("POST", "/", "one", body("EVALSHA", c.Script.SHA), 400, `{"error":"NOSCRIPT `)
	status, got := p.ask("POST", "/", "one", body("EVAL", c.Script.Text))
	var reply struct{ Result []any }
	d := json.NewDecoder(strings.NewReader(got))
	d.UseNumber()
	if err := d.Decode(&reply); err != nil || status != 200 {
		p.t.Fatalf("%s: %d %s %v", c.Script.Name, status, got, err)
	}
	var list []script.Value
	for _, v := range reply.Result {
		switch v := v.(type) {
		case json.Number:
			n, err := v.Int64()
			if err != nil {
				p.t.Fatal(err)
			}
			list = append(list, script.Value{Int: n, IsInt: true})
		case string:
			list = append(list, script.Value{Text: v})
		}
	}
	return list
}

func TestTLSToRedis(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = l.Close()
	buckettest.StartServer(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	args := []string{"-redis", addr, "-timeout", "2s", "-tls"}
	mutual := start(t, nil, append(args, "-tls-ca", cert, "-tls-cert", cert, "-tls-key", key)...)
	mutual.want("POST", "/", "one", `["PING"]`, 200, `{"result":"PONG"}`)
	anonymous := start(t, nil, append(args, "-tls-ca", cert)...)
	anonymous.want("POST", "/", "one", `["PING"]`, 503, `{"error":"NOLINK `)
	stranger := start(t, nil, append(args, "-tls-cert", cert, "-tls-key", key)...)
	stranger.want("POST", "/", "one", `["PING"]`, 503, `{"error":"NOLINK `)
	// With tls-cluster a node tells the ports of the kind that it is asked on, else the clear ones only.
	tlsPort := freePort(t)
	node := buckettest.StartServer(t, "--cluster-enabled", "yes", "--cluster-port", freePort(t), "--cluster-announce-ip", "127.0.0.1",
		"--tls-cluster", "yes", "--tls-port", tlsPort,
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	if err := node.Client().ClusterAddSlotsRange(context.Background(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	cluster := start(t, nil, "-redis", "127.0.0.1:"+tlsPort, "-timeout", "2s", "-cluster", "-tls", "-tls-ca", cert)
	eventually(t, "the cluster serves", func() bool {
		_, body := cluster.ask("POST", "/", "one", `["EVAL","return redis.call('SET',KEYS[1],1)","1","k"]`)
		return body == `{"result":"OK"}`
	})
	oldest := func(version uint16) string {
		l := listenTLS(t, cert, key, version)
		p := start(t, nil, "-redis", l, "-timeout", "2s", "-tls", "-tls-ca", cert)
		_, body := p.ask("POST", "/", "one", `["PING"]`)
		return body
	}
	if body := oldest(tls.VersionTLS12); body != `{"result":"PONG"}` {
		t.Errorf("TLS 1.2: %s", body)
	}
	if body := oldest(tls.VersionTLS11); !strings.HasPrefix(body, `{"error":"NOLINK `) {
		t.Errorf("TLS 1.1: %s", body)
	}
	misnamed := start(t, nil, append(args, "-tls-ca", cert, "-tls-cert", cert, "-tls-key", key, "-tls-server-name", "elsewhere")...)
	misnamed.want("POST", "/", "one", `["PING"]`, 503, `{"error":"NOLINK `)
}

// listenTLS answers PONG to everything, in a version of TLS and in none above it.
func listenTLS(t *testing.T, cert, key string, version uint16) (addr string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: version, MaxVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				for lines := bufio.NewReader(c); ; {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					switch strings.ToLower(strings.TrimSpace(line)) {
					case "hello":
						_, _ = io.WriteString(c, "-ERR unknown command 'hello'\r\n")
					case "ping":
						_, _ = io.WriteString(c, "+PONG\r\n")
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestTLSToRedisAndItsSentinel: nothing of a watched pair listens in clear text, but for what the test
// itself needs, and the bridge finds the master and its successor.
func TestTLSToRedisAndItsSentinel(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key)
	secure := []string{"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-replication", "yes"}
	port := freePort(t)
	master := buckettest.StartServer(t, append(secure, "--tls-port", port)...)
	replica := buckettest.StartServer(t, append(secure, "--tls-port", freePort(t), "--replicaof", "127.0.0.1 "+port)...)
	eventually(t, "replica follows", func() bool {
		v, err := replica.Client().Info(ctx, "replication").Result()
		return err == nil && strings.Contains(v, "master_link_status:up")
	})
	own := freePort(t)
	authority, err := authorities(cert)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	sentinel, addr := startSentinel(t, "127.0.0.1", port, &tls.Config{RootCAs: authority, Certificates: []tls.Certificate{pair}},
		"port 0", "tls-port "+own, "tls-cert-file "+cert, "tls-key-file "+key, "tls-ca-cert-file "+cert, "tls-replication yes")
	eventually(t, "sentinel knows the replica", func() bool {
		v, err := sentinel.Replicas(ctx, "main").Result()
		return err == nil && len(v) == 1
	})
	p := start(t, nil, "-redis", addr, "-sentinel", "main", "-timeout", "500ms", "-tls", "-tls-ca", cert, "-tls-cert", cert, "-tls-key", key)
	set := func() string {
		_, body := p.ask("POST", "/", "one", `["EVAL","return redis.call('SET',KEYS[1],1)","1","k"]`)
		return body
	}
	if body := set(); body != `{"result":"OK"}` {
		t.Fatal(body)
	}
	master.Kill()
	eventually(t, "served by the promoted replica", func() bool { return set() == `{"result":"OK"}` })
}

func writeCertificate(t *testing.T, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, x, x, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRedisSentinelUserIsEnough kills the master of a watched pair, as users who may do no more than that
// takes.
func TestRedisSentinelUserIsEnough(t *testing.T) {
	ctx := context.Background()
	master := buckettest.StartServer(t)
	host, port, _ := net.SplitHostPort(master.Addr())
	replica := buckettest.StartServer(t, "--replicaof", host+" "+port)
	eventually(t, "replica follows", func() bool {
		v, err := replica.Client().Info(ctx, "replication").Result()
		return err == nil && strings.Contains(v, "master_link_status:up")
	})
	sentinel, addr := startSentinel(t, host, port, nil)
	eventually(t, "sentinel knows the replica", func() bool {
		v, err := sentinel.Replicas(ctx, "main").Result()
		return err == nil && len(v) == 1
	})
	env := map[string]string{"EMMER_BRIDGE_REDIS_PASSWORD": "password", "EMMER_BRIDGE_SENTINEL_PASSWORD": "sentinel-password"}
	users := printed(t, env, "-sentinel", "main")
	for _, r := range []*buckettest.Server{master, replica} {
		if err := r.Client().Do(ctx, users[0]...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	// The default user is switched off: there is no way around these.
	direct := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	defer func() { _ = direct.Close() }()
	for _, command := range [][]any{users[1], {"ACL", "SETUSER", "default", "off"}} {
		if err := direct.Do(ctx, command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, []string{"EMMER_BRIDGE_REDIS_USERNAME=emmer", "EMMER_BRIDGE_REDIS_PASSWORD=password",
		"EMMER_BRIDGE_SENTINEL_USERNAME=emmer", "EMMER_BRIDGE_SENTINEL_PASSWORD=sentinel-password"}, "-redis", addr, "-sentinel", "main", "-timeout", "500ms")
	set := func(key string) string {
		_, body := p.ask("POST", "/", "one", `["EVAL","return redis.call('SET',KEYS[1],1)","1","emmer:1:{g}:`+key+`"]`)
		return body
	}
	if body := set("before"); body != `{"result":"OK"}` {
		t.Fatal(body)
	}
	master.Kill()
	eventually(t, "served by the promoted replica", func() bool { return set("after") == `{"result":"OK"}` })
	if strings.Contains(p.logged(), "NOPERM") {
		t.Errorf("something is not allowed:\n%s", p.logged())
	}
}

// startSentinel starts a Sentinel, in clear text unless settings say otherwise.
func startSentinel(t *testing.T, host, port string, secure *tls.Config, settings ...string) (*redis.SentinelClient, string) {
	t.Helper()
	own := freePort(t)
	if len(settings) == 0 {
		settings = []string{"port " + own}
	}
	for _, s := range settings {
		if p, ok := strings.CutPrefix(s, "tls-port "); ok {
			own = p
		}
	}
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	conf := strings.Join(settings, "\n") + "\nbind 127.0.0.1\nsentinel monitor main " + host + " " + port + " 1\n" +
		"sentinel down-after-milliseconds main 300\nsentinel failover-timeout main 3000\n"
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(buckettest.RedisServer(), file, "--sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	c := redis.NewSentinelClient(&redis.Options{Addr: "127.0.0.1:" + own, TLSConfig: secure})
	t.Cleanup(func() { _ = c.Close() })
	eventually(t, "sentinel serves", func() bool { return c.Ping(t.Context()).Err() == nil })
	return c, "127.0.0.1:" + own
}
