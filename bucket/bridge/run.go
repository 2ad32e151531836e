package bridge

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis never sends again by itself: a script whose reply was lost may
// have run, and only its sender knows whether it may run twice. (MOVED and ASK are still followed:
// a node that says so has not run it.)
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

func (b *Bridge) command(r *http.Request, body string) answer {
	args, err := parseCommand(body)
	if err != nil {
		return refuse(http.StatusBadRequest, "BADREQUEST", err.Error())
	}
	if name := args[0].(string); !b.allow[upper(name)] {
		return notAllowed(name)
	}
	ctx, cancel := b.deadline(r)
	defer cancel()
	v, err := b.do(ctx, args...)
	if err != nil {
		status, text := classify(err)
		return fail(status, text)
	}
	out, err := encoding(r).result(make([]byte, 0, 256), v)
	if err != nil {
		return fail(http.StatusBadRequest, "BADREPLY "+err.Error())
	}
	return answer{status: http.StatusOK, body: out}
}

// pipeline runs its commands in order, each with a result or an error of its own. If one of them is
// not allowed, none runs. If Redis answered none, the whole is a 503.
func (b *Bridge) pipeline(r *http.Request, body string) answer {
	list, err := parsePipeline(body)
	if err != nil {
		return refuse(http.StatusBadRequest, "BADREQUEST", err.Error())
	}
	for _, args := range list {
		if name := args[0].(string); !b.allow[upper(name)] {
			return notAllowed(name)
		}
	}
	ctx, cancel := b.deadline(r)
	defer cancel()
	replies := b.doAll(ctx, list)
	e := encoding(r)
	out := append(make([]byte, 0, 1024), '[')
	answered := false
	for i, c := range replies {
		if i > 0 {
			out = append(out, ',')
		}
		v, err := c.Result()
		if err == nil || errors.Is(err, redis.Nil) {
			answered = true
			whole, err := e.result(out, v)
			if err != nil {
				whole = appendError(out, "BADREPLY "+err.Error())
			}
			out = whole
			continue
		}
		status, text := classify(err)
		answered = answered || status == http.StatusBadRequest
		out = appendError(out, text)
	}
	if !answered {
		status, text := classify(replies[0].Err())
		return fail(status, text)
	}
	return answer{status: http.StatusOK, body: append(out, ']')}
}

// do runs one command. A null reply is nil without an error.
func (b *Bridge) do(ctx context.Context, args ...any) (any, error) {
	start := time.Now()
	cmd := redis.NewCmd(ctx, args...)
	_ = b.client.Process(ctx, once{cmd})
	b.observe(ctx, start, cmd.Err())
	v, err := cmd.Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return v, err
}

// doAll runs commands in order. On one server they share a round trip; a Cluster's nodes would run
// their parts side by side, so there each waits for the one before.
func (b *Bridge) doAll(ctx context.Context, list [][]any) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(list))
	start := time.Now()
	if b.cluster != nil {
		for i, args := range list {
			cmds[i] = redis.NewCmd(ctx, args...)
			_ = b.client.Process(ctx, once{cmds[i]})
		}
	} else {
		pipe := b.client.Pipeline()
		for i, args := range list {
			cmds[i] = redis.NewCmd(ctx, args...)
			_ = pipe.Process(ctx, once{cmds[i]})
		}
		_, _ = pipe.Exec(ctx) // each command holds its own error
	}
	for _, c := range cmds {
		b.observe(ctx, start, c.Err())
	}
	return cmds
}

// observe counts an exchange. Where a Cluster's node gives no answer, its replica may have been
// promoted: go-redis would learn of that at topologyAge only. (It reads the map in the background, one
// reader at a time and at most once in 200 ms.)
func (b *Bridge) observe(ctx context.Context, start time.Time, err error) {
	fault, status := "", http.StatusOK
	if err != nil && !errors.Is(err, redis.Nil) {
		var text string
		status, text = classify(err)
		fault = knownWord(text)
	}
	if b.cluster != nil && status == http.StatusServiceUnavailable {
		b.cluster.ReloadState(ctx)
	}
	if b.metrics != nil {
		b.metrics.Redis(time.Since(start), fault)
	}
}

func notAllowed(name string) answer {
	if len(name) > 64 {
		name = name[:64]
	}
	return refuse(http.StatusForbidden, "FORBIDDEN", "command "+strconv.QuoteToASCII(name)+" is not allowed here")
}

func encoding(r *http.Request) encoder {
	return encoder{b64: strings.EqualFold(r.Header.Get("Upstash-Encoding"), "base64")}
}

// classify tells a Redis error, whose text is passed on as it is, from the want of an answer.
func classify(err error) (status int, text string) {
	var said redis.Error
	var wire net.Error
	switch {
	case errors.As(err, &said):
		return http.StatusBadRequest, said.Error()
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return http.StatusServiceUnavailable, "TIMEOUT no connection to redis was free in time"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &wire) && wire.Timeout():
		return http.StatusServiceUnavailable, "TIMEOUT redis did not answer in time, the outcome is unknown"
	default:
		return http.StatusServiceUnavailable, "NOLINK no link to redis"
	}
}

// words are the first words of errors that are worth telling apart. A script may answer any word,
// so a metric's label is one of these or "other".
var words = map[string]bool{
	"TIMEOUT": true, "NOLINK": true,
	"ASK": true, "BUSY": true, "CLUSTERDOWN": true, "CROSSSLOT": true, "ERR": true, "LOADING": true, "MASTERDOWN": true,
	"MISCONF": true, "MOVED": true, "NOAUTH": true, "NOPERM": true, "NOREPLICAS": true, "NOSCRIPT": true, "OOM": true,
	"READONLY": true, "TRYAGAIN": true, "WRONGPASS": true, "WRONGTYPE": true,
}

func knownWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if words[word] {
		return word
	}
	return "other"
}
