package main

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// targetHeader is how the filter chooses a target; it ends here.
const targetHeader = "x-emmer-target"

// relay is a loopback address in front of a provider: hostsim speaks cleartext HTTP only, and a
// provider has TLS, a name and often a path of its own.
type relay struct {
	listener net.Listener
	server   *http.Server
}

func startRelay(target string, notes io.Writer) (*relay, error) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // what the client didn't ask for must not be added
	transport.MaxIdleConnsPerHost = 64
	quiet := log.New(notes, "upstream: ", 0)
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // each piece of a stream at once
		ErrorLog:      quiet,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Del(targetHeader)
		},
	}
	r := &relay{listener: listener, server: &http.Server{
		Handler: proxy, ErrorLog: quiet, ReadHeaderTimeout: 10 * time.Second,
	}}
	go r.server.Serve(listener)
	return r, nil
}

func (r *relay) url() string { return "http://" + r.listener.Addr().String() }

// finish takes no more requests and waits for those under way.
func (r *relay) finish(ctx context.Context) {
	if r.server.Shutdown(ctx) != nil {
		r.server.Close()
	}
}
