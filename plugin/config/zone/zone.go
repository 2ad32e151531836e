// Package zone holds the time zones of the IANA database, so that calendar windows work where the
// host has no zone files.
//
// It knows nothing of limits, and of the time. Its caller may hold on to what Load returns; each
// call of Load reads the archive again, which is meant for the start of a program.
//
// The data is in the public domain. It is release 2025c of the IANA time zone database, taken from
// lib/time/zoneinfo.zip of the Go toolchain by `go generate`: zones of equal content are kept once.
package zone

import (
	"bufio"
	"bytes"
	"compress/flate"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

//go:generate go run ./internal/gen

// Release is the release of the IANA time zone database that the archive holds.
const Release = "2025c"

// archive is a deflate stream: lines "name offset length", an empty line, and the TZif data that
// the offsets count from.
//
//go:embed zones.deflate
var archive []byte

// ErrUnknown is returned for a name that the database doesn't have.
var ErrUnknown = errors.New("unknown time zone")

// Load gives the zone of an IANA name such as Europe/Amsterdam; names are matched exactly. Unlike
// time.LoadLocation it never looks for files, which would add imports to the .wasm that hosts of
// proxy-wasm don't have.
func Load(name string) (*time.Location, error) {
	if name == "UTC" {
		return time.UTC, nil
	}
	r := bufio.NewReader(flate.NewReader(bytes.NewReader(archive)))
	offset, length, found := 0, 0, false
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("time zones: %w", err)
		}
		if line == "\n" {
			break
		}
		if !found && strings.HasPrefix(line, name+" ") {
			if offset, length, err = place(line[len(name)+1:]); err != nil {
				return nil, fmt.Errorf("time zones: %w", err)
			}
			found = true
		}
	}
	if !found || name == "" {
		return nil, ErrUnknown
	}
	data := make([]byte, length)
	if _, err := io.CopyN(io.Discard, r, int64(offset)); err != nil {
		return nil, fmt.Errorf("time zones: %w", err)
	}
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("time zones: %w", err)
	}
	return time.LoadLocationFromTZData(name, data)
}

func place(line string) (offset, length int, err error) {
	from, size, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	if offset, err = strconv.Atoi(from); err != nil {
		return 0, 0, err
	}
	length, err = strconv.Atoi(size)
	return offset, length, err
}
