package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Load says how to press one address.
type Load struct {
	Addr    string
	Request []byte // one whole HTTP/1.1 request, sent as it is, over and over
	Conns   int    // keep-alive connections, each with one request at a time
	For     time.Duration
	Most    int           // requests in all; 0 = as many as fit
	Timeout time.Duration // of one request; what takes longer counts as an error
}

// Sample is what a load saw.
type Sample struct {
	Latencies []time.Duration // of all answers, sorted
	Took      time.Duration
	Statuses  map[string]int           // answers by status code
	Errors    map[string]int           // requests without a whole answer, by reason
	CPU       map[string]time.Duration // what processes used meanwhile, if somebody looked
}

// RPS is answers per second.
func (s Sample) RPS() float64 {
	if s.Took <= 0 {
		return 0
	}
	return float64(len(s.Latencies)) / s.Took.Seconds()
}

// Percentile is the latency that p percent of the answers did not exceed; 0 without answers.
func (s Sample) Percentile(p float64) time.Duration {
	if len(s.Latencies) == 0 {
		return 0
	}
	rank := int(p / 100 * float64(len(s.Latencies)))
	return s.Latencies[min(rank, len(s.Latencies)-1)]
}

// Only says whether every request was answered with the one status.
func (s Sample) Only(status string) bool {
	return len(s.Errors) == 0 && len(s.Statuses) == 1 && s.Statuses[status] > 0
}

// Run presses until the time is over or the requests are spent. Connections that break are opened again.
func (l Load) Run() Sample {
	most := l.Most
	if most == 0 {
		most = int(l.For/(10*time.Microsecond)) + 1
	}
	start := time.Now()
	parts := make([]Sample, l.Conns)
	var workers sync.WaitGroup
	for i := range parts {
		share := most / l.Conns
		if i < most%l.Conns {
			share++
		}
		workers.Go(func() { parts[i] = l.one(start.Add(l.For), share) })
	}
	workers.Wait()
	all := Sample{Took: time.Since(start), Statuses: map[string]int{}, Errors: map[string]int{}}
	for _, p := range parts {
		all.Latencies = append(all.Latencies, p.Latencies...)
		for k, n := range p.Statuses {
			all.Statuses[k] += n
		}
		for k, n := range p.Errors {
			all.Errors[k] += n
		}
	}
	slices.Sort(all.Latencies)
	return all
}

// one drives a single connection.
func (l Load) one(end time.Time, most int) Sample {
	s := Sample{Statuses: map[string]int{}, Errors: map[string]int{}}
	var conn net.Conn
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	reader := bufio.NewReaderSize(nil, 32<<10)
	var line []byte
	for range most {
		begin := time.Now()
		if !begin.Before(end) {
			break
		}
		if conn == nil {
			c, err := net.DialTimeout("tcp", l.Addr, l.Timeout)
			if err != nil {
				s.Errors["dial"]++
				return s
			}
			conn = c
			reader.Reset(conn)
			begin = time.Now()
		}
		status, keep, err := l.exchange(conn, reader, &line, begin.Add(l.Timeout))
		if err != nil {
			s.Errors[reason(err)]++
		} else {
			s.Latencies = append(s.Latencies, time.Since(begin))
			s.Statuses[status]++
		}
		if err != nil || !keep {
			conn.Close()
			conn = nil
		}
	}
	return s
}

func (l Load) exchange(conn net.Conn, reader *bufio.Reader, line *[]byte, deadline time.Time) (status string, keep bool, err error) {
	if err := conn.SetDeadline(deadline); err != nil {
		return "", false, err
	}
	if _, err := conn.Write(l.Request); err != nil {
		return "", false, err
	}
	h, _, err := readMessage(reader, line)
	if err != nil {
		return "", false, err
	}
	words := bytes.Fields(h.start)
	if len(words) < 2 || !bytes.HasPrefix(words[0], []byte("HTTP/1.")) {
		return "", false, fmt.Errorf("status line %q", h.start)
	}
	return string(words[1]), !h.close, nil
}

func reason(err error) string {
	if e, ok := err.(net.Error); ok && e.Timeout() {
		return "timeout"
	}
	return "broken"
}
