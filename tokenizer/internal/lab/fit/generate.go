package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// generators make texts that no package holds enough of. The held-out ones come of another seed.
var generators = []struct {
	class string
	write func(*strings.Builder, *rand.Rand) // one more piece of the text
}{
	{"logs", func(b *strings.Builder, r *rand.Rand) {
		h, m, s := r.IntN(24), r.IntN(60), r.IntN(60)
		switch r.IntN(4) {
		case 0:
			fmt.Fprintf(b, "2026-%02d-%02dT%02d:%02d:%02d.%03dZ %s [%s] request_id=%x status=%d duration_ms=%d path=/api/v%d/%s\n", 1+r.IntN(12), 1+r.IntN(28), h, m, s, r.IntN(1000),
				pick(r, "INFO", "WARN", "ERROR", "DEBUG"), pick(r, "http", "worker-3", "db.pool", "scheduler", "auth"), r.Uint64(), 200+r.IntN(400), r.IntN(5000), 1+r.IntN(3), pick(r, words...))
		case 1:
			fmt.Fprintf(b, "%d.%d.%d.%d - - [%02d/Dec/2026:%02d:%02d:%02d +0000] \"%s /%s/%d HTTP/1.1\" %d %d \"-\" \"Mozilla/5.0 (X11; Linux x86_64)\"\n", r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(256),
				1+r.IntN(28), h, m, s, pick(r, "GET", "POST", "PUT"), pick(r, words...), r.IntN(100000), 200+r.IntN(350), r.IntN(100000))
		case 2:
			fmt.Fprintf(b, "Dec %2d %02d:%02d:%02d %s-%d %s[%d]: %s %s %s=%d\n", 1+r.IntN(28), h, m, s, pick(r, "node", "web", "db"), r.IntN(40), pick(r, "systemd", "kernel", "sshd", "kubelet", "cron"), r.IntN(32768),
				pick(r, "Started", "failed to", "Accepted", "connection closed by"), pick(r, words...), pick(r, words...), r.IntN(65536))
		default:
			fmt.Fprintf(b, "{\"level\":\"%s\",\"ts\":%d.%06d,\"caller\":\"%s/%s.go:%d\",\"msg\":\"%s %s\",\"%s\":%d}\n", pick(r, "info", "warn", "error"), 1796000000+r.IntN(9999999), r.IntN(1000000),
				pick(r, words...), pick(r, words...), r.IntN(900), pick(r, words...), pick(r, words...), pick(r, words...), r.IntN(100000))
		}
	}},
	{"csv", func(b *strings.Builder, r *rand.Rand) {
		sep := pick(r, ",", ",", ";", "\t")
		for i := range 3 + r.IntN(6) {
			if i > 0 {
				b.WriteString(sep)
			}
			switch r.IntN(5) {
			case 0:
				fmt.Fprintf(b, "%d", r.IntN(1000000))
			case 1:
				fmt.Fprintf(b, "%.2f", r.Float64()*1000)
			case 2:
				fmt.Fprintf(b, "20%02d-%02d-%02d", 10+r.IntN(17), 1+r.IntN(12), 1+r.IntN(28))
			case 3:
				b.WriteString(pick(r, words...))
			default:
				fmt.Fprintf(b, "%q", pick(r, words...)+" "+pick(r, words...))
			}
		}
		b.WriteByte('\n')
	}},
	{"records", func(b *strings.Builder, r *rand.Rand) {
		indent := pick(r, "", "", "  ", "    ")
		line := ""
		if indent != "" {
			line = "\n"
		}
		colon := pick(r, ":", ": ")
		b.WriteString("{" + line)
		for i := range 2 + r.IntN(8) {
			if i > 0 {
				b.WriteString("," + line)
			}
			fmt.Fprintf(b, "%s%q%s", indent, pick(r, words...)+pick(r, "", "_id", "_at", "Name", "Count"), colon)
			switch r.IntN(7) {
			case 0:
				fmt.Fprint(b, r.IntN(100000))
			case 1:
				fmt.Fprintf(b, "%.4f", r.NormFloat64()*50)
			case 2:
				b.WriteString(pick(r, "true", "false", "null", "[]", "{}"))
			case 3:
				fmt.Fprintf(b, "[%d,%s%d, %q]", r.IntN(100), line, r.IntN(1000), pick(r, words...))
			case 4:
				fmt.Fprintf(b, "{%q%s%q}", pick(r, words...), colon, pick(r, words...))
			case 5:
				fmt.Fprintf(b, "%q", identifier(r))
			default:
				fmt.Fprintf(b, "%q", pick(r, words...)+" "+pick(r, words...)+" "+pick(r, words...))
			}
		}
		b.WriteString(line + "}" + pick(r, ",", "\n", ",\n"))
	}},
	{"base64", func(b *strings.Builder, r *rand.Rand) {
		raw := make([]byte, 57)
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		switch s := base64.StdEncoding.EncodeToString(raw); r.IntN(3) {
		case 0:
			b.WriteString(s + "\n")
		default:
			b.WriteString(s)
		}
	}},
	{"hex", func(b *strings.Builder, r *rand.Rand) {
		raw := make([]byte, 4<<r.IntN(5))
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		s := hex.EncodeToString(raw)
		if r.IntN(4) == 0 {
			s = strings.ToUpper(s)
		}
		b.WriteString(pick(r, "", "", "0x", "sha256:") + s + pick(r, "", " ", "\n", ", "))
	}},
	{"identifiers", func(b *strings.Builder, r *rand.Rand) { b.WriteString(identifier(r) + pick(r, "\n", " ", ", ", ";\n")) }},
	{"emoji", func(b *strings.Builder, r *rand.Rand) {
		switch r.IntN(6) {
		case 0:
			b.WriteString(pick(r, "👩🏽‍💻", "👨‍👩‍👧‍👦", "🇳🇱", "🏳️‍🌈", "❤️", "✅", "⚠️", "🚀", "👍🏻", "🤷‍♂️", "1️⃣"))
		case 1:
			b.WriteRune(0x2600 + rune(r.IntN(0x1c0)))
		case 2:
			b.WriteString(" " + pick(r, words...) + " ")
		case 3:
			b.WriteString(pick(r, "\n", " ", "!", " - "))
		default:
			b.WriteRune(0x1f300 + rune(r.IntN(0x350)))
		}
	}},
	{"white space", func(b *strings.Builder, r *rand.Rand) {
		switch r.IntN(7) {
		case 0:
			b.WriteString(strings.Repeat(" ", 1+r.IntN(20)))
		case 1:
			b.WriteString(strings.Repeat("\n", 1+r.IntN(5)))
		case 2:
			b.WriteString(strings.Repeat("\t", 1+r.IntN(6)))
		case 3:
			b.WriteString("\n" + strings.Repeat(" ", 4*r.IntN(8)))
		case 4:
			b.WriteString(pick(r, "\r\n", " \n", "\u00a0", "\t ", "\u3000"))
		default:
			b.WriteString(pick(r, words...))
		}
	}},
	{"numbers", func(b *strings.Builder, r *rand.Rand) {
		switch r.IntN(6) {
		case 0:
			fmt.Fprintf(b, "%d + %d = %d\n", r.IntN(1000), r.IntN(1000), r.IntN(2000))
		case 1:
			fmt.Fprintf(b, "%.*f ", r.IntN(9), r.NormFloat64()*1000)
		case 2:
			fmt.Fprintf(b, "[%d, %d, %d], ", r.IntN(100), r.IntN(10), -r.IntN(10000))
		case 3:
			fmt.Fprintf(b, "%e\t", r.NormFloat64())
		case 4:
			fmt.Fprintf(b, "$%d,%03d.%02d (%d%%) ", r.IntN(1000), r.IntN(1000), r.IntN(100), r.IntN(101))
		default:
			fmt.Fprintf(b, "x_%d^2 + \\frac{%d}{%d}y \\le %d\\sqrt{z}\n", r.IntN(10), r.IntN(100), 1+r.IntN(20), r.IntN(1000))
		}
	}},
	{"addresses", func(b *strings.Builder, r *rand.Rand) {
		switch r.IntN(4) {
		case 0:
			fmt.Fprintf(b, "https://www.%s%s.%s/%s/%s?%s=%d&%s=%s\n", pick(r, words...), pick(r, words...), pick(r, "com", "org", "example", "io", "de"), pick(r, words...), identifier(r), pick(r, words...), r.IntN(10000), pick(r, words...), identifier(r))
		case 1:
			fmt.Fprintf(b, "%s.%s@%s.example, ", pick(r, words...), pick(r, words...), pick(r, words...))
		case 2:
			fmt.Fprintf(b, "/usr/%s/%s/%s-%d.%d.%d/%s.%s\n", pick(r, "lib", "share", "local"), pick(r, words...), pick(r, words...), r.IntN(10), r.IntN(30), r.IntN(10), identifier(r), pick(r, "so", "txt", "py", "json"))
		default:
			fmt.Fprintf(b, "C:\\%s\\%s\\%s.exe ", pick(r, words...), pick(r, words...), pick(r, words...))
		}
	}},
	{"random letters", func(b *strings.Builder, r *rand.Rand) {
		alphabet := pick(r, "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "абвгдежзийклмнопрстуфхцчшщъыьэюя", "abcdefghijklmnopqrstuvwxyz0123456789", "αβγδεζηθικλμνξοπρστυφχψω", "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~")
		letters := []rune(alphabet)
		for range 3 + r.IntN(40) {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
		b.WriteString(pick(r, "", " ", " ", "\n"))
	}},
	// Hostile text: a hash of characters that hardly ever meet must not weigh as those it falls together with.
	{"random characters", func(b *strings.Builder, r *rand.Rand) {
		n, times := 2+r.IntN(30), 1
		if r.IntN(2) == 0 {
			n, times = 1+r.IntN(5), 2+r.IntN(30)
		}
		s := make([]byte, n)
		for i := range s {
			s[i] = byte(' ' + r.IntN(95))
		}
		b.WriteString(strings.Repeat(string(s), times))
	}},
	{"repeats", func(b *strings.Builder, r *rand.Rand) {
		s := pick(r, "a", "=", "-", "*", "#", ".", " ", "\n", "0", "_", "ab", "ha", "lol ", "!", "?", "x", "A", "1", "-=", "👍", "あ", "哈", "~", "/", "\\", "\t", "no ", "░", "─", "│ ")
		b.WriteString(strings.Repeat(s, 1+r.IntN(1+r.IntN(120))))
		b.WriteString(pick(r, "\n", " ", pick(r, words...), "\n\n"))
	}},
	{"tables", func(b *strings.Builder, r *rand.Rand) {
		for range 2 + r.IntN(4) {
			fmt.Fprintf(b, "| %s ", pick(r, pick(r, words...), "---", fmt.Sprint(r.IntN(10000)), "**"+pick(r, words...)+"**", "`"+identifier(r)+"`", ":-----:", "       "))
		}
		b.WriteString("|\n")
		if r.IntN(5) == 0 {
			b.WriteString("┌──────┬─────┐\n│ " + pick(r, words...) + " │ x │\n└──────┴─────┘\n")
		}
	}},
	{"rare", func(b *strings.Builder, r *rand.Rand) {
		low, n := 0, 0
		switch r.IntN(9) {
		case 0, 1:
			low, n = 0x4e00, 0x5200
		case 2:
			low, n = 0xac00, 0x2ba4
		case 3:
			low, n = 0x3400, 0x19b0
		case 4:
			low, n = 0x20000, 0xa6d0
		case 5:
			low, n = 0x2000, 0xc00
		case 6:
			low, n = 0x100, 0x500
		case 7:
			low, n = 0xa0, 0x17000
		default:
			low, n = 0x1d400, 0x300
		}
		for range 1 + r.IntN(30) {
			if c := rune(low + r.IntN(n)); utf8.ValidRune(c) {
				b.WriteRune(c)
			}
		}
		b.WriteString(pick(r, "", " ", "\n", "、", ", "))
	}},
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// identifier is a name as programs and systems make them.
func identifier(r *rand.Rand) string {
	a, b, c := pick(r, words...), pick(r, words...), pick(r, words...)
	title := func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
	switch r.IntN(9) {
	case 0:
		return a + title(b) + title(c)
	case 1:
		return a + "_" + b + "_" + c
	case 2:
		return title(a) + title(b)
	case 3:
		return strings.ToUpper(a + "_" + b)
	case 4:
		return a + "-" + b + "-" + fmt.Sprint(r.IntN(100))
	case 5:
		return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", r.Uint32(), r.IntN(65536), r.IntN(4096), 0x8000+r.IntN(0x4000), r.Uint64()>>16)
	case 6:
		return fmt.Sprintf("%s_%s", pick(r, "sk", "call", "req", "toolu", "chatcmpl"), base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprint(r.Uint64()*2654435761))))
	case 7:
		return fmt.Sprintf("%s.%s.v%d", a, b, r.IntN(4))
	default:
		return a + fmt.Sprint(r.IntN(1000))
	}
}

// words are what generated texts have of language.
var words = strings.Fields(`account active address agent amount answer archive array async batch billing block body branch bucket buffer
build cache call cancel category channel charge child client closed cluster code column comment commit config connect content context
count create created currency customer data database date debug default delay delete delivery deploy depth description detail device
disabled document domain driver duration email enable encoding endpoint engine entity entry error event example export failed feature
field file filter flag folder format frame function gateway group handler hash header health height host image import index input
instance integer invoice item job journal key label language latency layer layout length level limit link list listener local location
lock login logger main manager map market master match memory merge message meta method metric model module monitor name network node
notice number object offset open operation option order origin output owner package page parameter parent parser partner password path
payload payment pending percent period phone pipeline plugin policy pool port position prefix price priority process product profile
project property provider proxy public query queue random range rate reason record region registry release remote render report request
reserve resource response result retry role root route router rule runtime sample schedule schema scope score script search secret
section segment select sender sequence server service session setting shard shipping signal size snapshot source split stack stage start
state status storage store stream string style subject submit summary support switch symbol sync system table tag target task team
template tenant text thread threshold ticket time timeout title token topic total trace traffic transaction transfer tree trigger type
unit update upload upstream usage user valid value vendor verify version video view visible volume wallet warehouse warning weight
window worker workspace zone`)

// generated makes the documents of all generators.
func generated() []document {
	var docs []document
	for _, g := range generators {
		for _, held := range []bool{false, true} {
			n, name := fitDocuments, g.class
			if held {
				n, name = heldDocuments, g.class+" held out"
			}
			r := random(name)
			for range n {
				var b strings.Builder
				for size := documentLength(r) * 3 / 4; b.Len() < size; {
					g.write(&b, r)
				}
				s := b.String()
				docs = append(docs, document{g.class, "generated", held, s[:byteOf(s, 6000)]})
			}
		}
	}
	return docs
}
