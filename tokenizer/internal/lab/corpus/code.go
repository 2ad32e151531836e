package corpus

// identifier is a name as programmers make them: one to three words in one of three styles.
func identifier(b []byte, r *Rand) []byte {
	style := r.Intn(3)
	for i := range 1 + r.Intn(3) {
		word := englishNouns.pick(r)
		switch {
		case i > 0 && style == 0:
			b = append(b, '_')
		case i > 0 || style == 2:
			word = capital(word)
		}
		b = append(b, word...)
	}
	return b
}

func expression(b []byte, r *Rand, depth int) []byte {
	switch n := r.Intn(10); {
	case n < 3:
		return identifier(b, r)
	case n == 3:
		return appendInt(b, r.Intn(100000))
	case n == 4:
		b = append(b, '"')
		b = append(b, englishVerbs.pick(r)+" "+englishNouns.pick(r)...)
		return append(b, pickOf(r, `"`, `: %v"`, `\n"`, `\"x\""`)...)
	case n < 7 && depth > 0:
		b = identifier(b, r)
		b = append(b, '.')
		b = append(b, capital(englishVerbs.pick(r))...)
		b = append(b, '(')
		for i := range r.Intn(3) {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = expression(b, r, depth-1)
		}
		return append(b, ')')
	case n == 7:
		b = identifier(b, r)
		b = append(b, '[')
		b = append(b, pickOf(r, "i", "0", "len(x)-1", "key", "n>>3&0xff")...)
		return append(b, ']')
	case n == 8 && depth > 0:
		b = expression(b, r, depth-1)
		b = append(b, pickOf(r, " + ", " - ", " * ", " == ", " != ", " && ", " || ", " < ", "<<")...)
		return expression(b, r, depth-1)
	}
	return append(b, pickOf(r, "nil", "true", "false", "err", "ctx", "null", "this", "self", "0x7f", "1e-9", "b'\\x00'")...)
}

// code is a function in Go, JavaScript or Python.
func code(b []byte, r *Rand) []byte {
	language := r.Intn(3)
	indent := pickOf(r, "\t", "    ", "  ")
	comment := "// "
	if language == 2 {
		comment = "# "
	}
	b = append(b, comment...)
	b = englishSentence(b, r)
	b = append(b, '\n')
	b = append(b, []string{"func ", "export async function ", "def "}[language]...)
	b = identifier(b, r)
	b = append(b, '(')
	b = identifier(b, r)
	b = append(b, []string{" string, n int) (int, error) {\n", ", options = {}) {\n", ": str, *, limit=None) -> dict:\n"}[language]...)
	depth := 1
	line := func(text string) {
		for range depth {
			b = append(b, indent...)
		}
		b = append(b, text...)
	}
	for range 3 + r.Intn(8) {
		switch r.Intn(6) {
		case 0:
			line([]string{"if ", "if (", "if "}[language])
			b = expression(b, r, 2)
			b = append(b, []string{" {\n", ") {\n", ":\n"}[language]...)
			depth++
			line("return ")
			b = expression(b, r, 1)
			b = append(b, '\n')
			depth--
			if language != 2 {
				line("}\n")
			}
		case 1:
			line(comment)
			b = englishClause(b, r)
			b = append(b, '\n')
		case 2:
			b = append(b, '\n')
		default:
			line([]string{"", "const ", ""}[language])
			b = identifier(b, r)
			b = append(b, []string{" := ", " = ", " = "}[language]...)
			b = expression(b, r, 2)
			b = append(b, []string{"\n", ";\n", "\n"}[language]...)
		}
	}
	line("return ")
	b = expression(b, r, 1)
	return append(b, []string{", nil\n}\n\n", ";\n}\n\n", "\n\n"}[language]...)
}

func markdown(b []byte, r *Rand) []byte {
	b = append(b, pickOf(r, "# ", "## ", "### ")...)
	b = append(b, capital(englishVerbs.pick(r))+" the "+englishNouns.pick(r)+"\n\n"...)
	for i := range 2 + r.Intn(5) {
		switch r.Intn(4) {
		case 0:
			b = append(appendInt(b, i+1), ". **"...)
			b = append(b, englishNouns.pick(r)+"**: "...)
		case 1:
			b = append(b, "- `"...)
			b = identifier(b, r)
			b = append(b, "`: "...)
		case 2:
			b = append(b, "| "+englishNouns.pick(r)+" | "...)
			b = append(appendInt(b, r.Intn(10000)), " | "...)
		default:
			b = append(b, "* ["+englishNouns.pick(r)+"](https://example.com/"+englishNouns.pick(r)+"?id="...)
			b = append(appendInt(b, r.Intn(1<<20)), ") "...)
		}
		b = englishClause(b, r)
		b = append(b, '\n')
	}
	return append(b, '\n')
}

func jsonDocument(b []byte, r *Rand) []byte {
	b = append(b, '{')
	for i := range 3 + r.Intn(6) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, pickOf(r, "\n  \"", " \"", "\"")...)
		b = identifier(b, r)
		b = append(b, "\": "...)
		switch r.Intn(5) {
		case 0:
			b = appendInt(b, r.Intn(1<<30))
		case 1:
			b = append(b, pickOf(r, "true", "false", "null", "[]", "0.25", "-1")...)
		case 2:
			b = append(b, `["`+englishNouns.pick(r)+`", "`+englishNouns.pick(r)+`"]`...)
		default:
			b = append(b, '"')
			b = englishClause(b, r)
			b = append(b, '"')
		}
	}
	return append(b, "\n}\n"...)
}

func timestamp(b []byte, r *Rand) []byte {
	b = append(b, "2026-"...)
	b = append(appendPadded(b, 1+r.Intn(12), 2), '-')
	b = append(appendPadded(b, 1+r.Intn(28), 2), 'T')
	b = append(appendPadded(b, r.Intn(24), 2), ':')
	b = append(appendPadded(b, r.Intn(60), 2), ':')
	b = append(appendPadded(b, r.Intn(60), 2), '.')
	return append(appendPadded(b, r.Intn(1000), 3), 'Z')
}

func address(b []byte, r *Rand) []byte {
	b = append(b, "10."...)
	b = append(appendInt(b, r.Intn(256)), '.')
	b = append(appendInt(b, r.Intn(256)), '.')
	return appendInt(b, 1+r.Intn(254))
}

func logLines(b []byte, r *Rand) []byte {
	format := r.Intn(3)
	for range 3 + r.Intn(6) {
		switch format {
		case 0:
			b = timestamp(b, r)
			b = append(b, pickOf(r, " INFO ", " INFO ", " WARN ", " ERROR ", " DEBUG ")+"["...)
			b = identifier(b, r)
			b = append(b, "] "...)
			b = englishClause(b, r)
			b = append(b, " id="...)
			b = append(appendHex(b, r, 16), " took="...)
			b = append(appendInt(b, r.Intn(5000)), "ms\n"...)
		case 1:
			b = address(b, r)
			b = append(b, " - - ["...)
			b = timestamp(b, r)
			b = append(b, "] \""+pickOf(r, "GET", "POST", "PUT", "DELETE")+" /v1/"+englishNouns.pick(r)+"/"...)
			b = append(appendInt(b, r.Intn(100000)), " HTTP/1.1\" "...)
			b = append(b, pickOf(r, "200 ", "200 ", "404 ", "429 ", "503 ")...)
			b = append(appendInt(b, r.Intn(100000)), '\n')
		default:
			b = append(b, `{"ts":"`...)
			b = timestamp(b, r)
			b = append(b, `","level":"`+pickOf(r, "info", "warn", "error")+`","msg":"`...)
			b = englishClause(b, r)
			b = append(b, `","peer":"`...)
			b = address(b, r)
			b = append(b, "\"}\n"...)
		}
	}
	return b
}
