package bench

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// tick is the unit of /proc/PID/stat, USER_HZ, which is 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// cpuTime is what a process has used so far, in user and system mode; 0 where there is no /proc.
func cpuTime(pid int) time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	return parseStat(text)
}

// parseStat reads fields 14 and 15. Field 2 is the program's name in parentheses and may hold
// anything, so the count begins behind its end.
func parseStat(text []byte) time.Duration {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return 0
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) < 13 {
		return 0
	}
	var sum time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0
		}
		sum += time.Duration(n) * tick
	}
	return sum
}

// cpu is the time that each process of the stack has used.
func (s *stack) cpu() map[string]time.Duration {
	return map[string]time.Duration{
		"envoy":  cpuTime(s.envoy.Pid()),
		"bridge": cpuTime(s.bridge.cmd.Process.Pid),
		"redis":  cpuTime(s.redis.cmd.Process.Pid),
	}
}

// since is the difference of two looks.
func since(before, after map[string]time.Duration) map[string]time.Duration {
	used := map[string]time.Duration{}
	for name, t := range after {
		used[name] = t - before[name]
	}
	return used
}

// perCall shares what the rounds used among their answers, in microseconds.
func perCall(rounds []Sample) map[string]float64 {
	used, calls := map[string]time.Duration{}, 0
	for _, s := range rounds {
		for name, t := range s.CPU {
			used[name] += t
		}
		calls += len(s.Latencies)
	}
	if calls == 0 || len(used) == 0 {
		return nil
	}
	each := map[string]float64{}
	for name, t := range used {
		each[name] = round2(float64(t.Microseconds()) / float64(calls))
	}
	return each
}
