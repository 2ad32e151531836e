package approx

import (
	"strings"
	"testing"
	"unicode"
)

// reference is the dumb counter: one character at a time, straight from the table's file.
func reference(data, text string) int {
	weight := func(row, column int) int {
		i := 2 * (row*stride + column)
		return int(int16(uint16(data[i]) | uint16(data[i+1])<<8))
	}
	sum, prev, place := 0, startClass, 0
	for _, r := range text {
		k := int(classOf(uint32(r)))
		sum += weight(prev, k)
		switch {
		case k >= 1 && k <= 52, k >= 80 && k <= 82:
			place = min(place+1, maxPlace)
		default:
			place = 0
		}
		sum += weight(classes, place)
		prev = k
	}
	n := (sum + 1<<(fraction-1)) >> fraction
	return max((len(text)+longestToken-1)/longestToken, min(n, len(text)))
}

func TestCounterAgreesWithTheReference(t *testing.T) {
	var every strings.Builder
	for r := rune(0); r <= unicode.MaxRune; r += 1 + r/300 {
		if r < 0xd800 || r > 0xdfff {
			every.WriteRune(r)
		}
	}
	for _, c := range []struct {
		family *Family
		data   string
	}{{O200K(), o200kData}, {CL100K(), cl100kData}, {Claude(), claudeData}, {Gemma(), gemmaData}} {
		for _, text := range []string{
			"", "a", "Hello, world!", "don't\r\n\t  12345 ABC_def", "你好，世界。caf\u00e9 naïve", "😀👩🏽‍💻 текст", every.String(),
			strings.Repeat("Antidisestablishmentarianism ", 40), strings.Repeat("ы", 40),
		} {
			var n Counter
			n.Reset(c.family)
			n.Write([]byte(text))
			if got, want := n.Count(), reference(c.data, text); got != want {
				t.Errorf("%s %.40q: %d, want %d", c.family.Name(), text, got, want)
			}
		}
	}
}

func TestTablesAreWhole(t *testing.T) {
	for name, data := range map[string]string{"o200k": o200kData, "cl100k": cl100kData, "claude": claudeData, "gemma": gemmaData} {
		if want := 2 * (runPlace + maxPlace + 1); len(data) != want {
			t.Errorf("%s: %d bytes, want %d", name, len(data), want)
		}
		for i := 1; i < 2*runPlace; i += 2 {
			if w := int16(uint16(data[i-1]) | uint16(data[i])<<8); w < 0 || w > 4<<fraction {
				t.Errorf("%s: weight %d is %d", name, i/2, w)
			}
		}
	}
	highest := 0
	for i := range pages {
		highest = max(highest, int(classData[i]))
	}
	if want := pages + (highest+1)*128; len(classData) != want {
		t.Errorf("classes: %d bytes, want %d", len(classData), want)
	}
	for i := pages; i < len(classData); i++ {
		if classData[i] >= classes {
			t.Errorf("class %d at %d", classData[i], i)
		}
	}
}
