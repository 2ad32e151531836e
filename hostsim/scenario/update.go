package scenario

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/tools/txtar"
)

// updates are what was found where something else was expected, for one scenario in all its modes.
// The first mode that finds a difference writes it; the others then show theirs as failures when the
// scenario is run again.
type updates struct {
	mu    sync.Mutex
	lines map[int]string // whole lines of the file by number
	files map[string]string
}

// take notes a finding if it can be written: only for ==, and only where the value holds no variable.
func (u *updates) take(w *world, st *step, got reading) bool {
	e := st.expect
	if e.op != "==" || !got.present || strings.Contains(e.value, "${") || e.subject[0] == "probe" || e.subject[0] == "metric" {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if e.file != "" {
		if !strings.Contains(string(w.s.files[e.file]), "${") {
			u.files[e.file] = got.value + "\n"
			return true
		}
		return false
	}
	if _, ok := u.lines[st.line]; ok {
		return true
	}
	before, _, _ := strings.Cut(st.text, " == ")
	u.lines[st.line] = before + " == " + written(got.value)
	return true
}

// written is a value as a steps file has it.
func written(value string) string {
	if value == "" || strings.TrimSpace(value) != value || strings.HasPrefix(value, `"`) ||
		strings.HasPrefix(value, "file ") || strings.Contains(value, "${") || !strconv.CanBackquote(value) {
		return strconv.Quote(value)
	}
	return value
}

// apply returns the scenario's text with the findings in it.
func (u *updates) apply(s *Scenario) []byte {
	a := &txtar.Archive{Comment: s.archive.Comment}
	for _, f := range s.archive.Files {
		data := f.Data
		if text, ok := u.files[f.Name]; ok {
			data = []byte(text)
		}
		if f.Name == fileSteps {
			lines := strings.Split(string(data), "\n")
			for i := range lines {
				if text, ok := u.lines[s.lines[f.Name]+i]; ok {
					lines[i] = text
				}
			}
			data = []byte(strings.Join(lines, "\n"))
		}
		a.Files = append(a.Files, txtar.File{Name: f.Name, Data: data})
	}
	return txtar.Format(a)
}

// write puts the findings into the scenario's file.
func (u *updates) write(s *Scenario) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.lines)+len(u.files) == 0 {
		return nil
	}
	text := u.apply(s)
	if bytes.Equal(text, txtar.Format(s.archive)) {
		return nil
	}
	if err := os.WriteFile(s.Path, text, 0o644); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	return nil
}
