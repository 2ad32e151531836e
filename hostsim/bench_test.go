package hostsim

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
)

// BenchmarkExchange is one request through the pair, with and without a callout, over a kept connection.
func BenchmarkExchange(b *testing.B) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	})
	siteA, bridge := &http.Server{Handler: echo}, &http.Server{Handler: echo}
	for _, mode := range []string{"m=pass", "now=queue", ""} {
		b.Run("mode "+mode, func(b *testing.B) {
			h, err := Start(context.Background(), Options{Wasm: chainWasm, VMID: "chain",
				Clusters:  map[string]Cluster{"siteA": {URL: listen(b, siteA)}, "bridge": {URL: listen(b, bridge)}},
				Listeners: []Listener{{Name: "pair", Filters: []Filter{{Name: "a", RootID: "a"}, {Name: "b", RootID: "b"}}, Routes: []Route{{"", "", "siteA"}}}}})
			if err != nil {
				b.Fatal(err)
			}
			defer h.Close()
			body := bytes.Repeat([]byte("q"), 2048)
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for b.Loop() {
				req, _ := http.NewRequest("POST", "http://"+h.Addr("pair")+"/x", bytes.NewReader(body))
				req.Header.Set("x-m", mode)
				resp, err := client.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 {
					b.Fatal(resp.Status)
				}
			}
		})
	}
}
