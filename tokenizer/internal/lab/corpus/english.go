package corpus

import "strings"

// The lists stand with the frequent words first. Verbs are regular ones, so that three endings are
// enough.
var (
	englishNouns = newZipf(strings.Fields(`time way day thing year world life hand part place case week company system
		program question work government number night point home water room mother area money story fact month lot right
		study book eye job word business issue side kind head house service friend father power hour game line end member
		law car city community name president team minute idea kid body information back parent face others level office
		door health person art war history party result change morning reason research girl guy moment air teacher force
		education request response server client token model message user limit budget window cache key value header body
		stream bucket policy rule error report network gateway cluster region bridge river garden kitchen engine doctor
		letter market winter summer station village island forest mountain machine measure method memory neighbour notebook
		opinion package pattern picture pocket problem process product project promise purpose quality quarter railway
		record relation sentence shadow shoulder signal silence society solution source spirit strategy structure student
		subject surface tomato tradition traffic tragedy umbrella variety vehicle victory vocabulary volunteer weather
		wedding whisper wonder workshop yesterday zebra archive balcony barrier blanket candle carpet cathedral ceiling
		chimney container corridor cousin curtain diameter document earthquake elephant envelope equation explosion factory
		fragment furniture gallery harbour hypothesis instrument jacket journey knowledge landscape laboratory lantern
		magazine mechanism microscope mixture monument orchestra parliament passenger philosopher pipeline podium
		population proportion protocol quantity rectangle republic restaurant satellite scientist sculpture settlement
		skeleton spectrum statistics symphony telescope temperature territory threshold transaction translator tributary
		universe vaccine velocity warehouse watershed wavelength`))

	englishVerbs = newZipf(strings.Fields(`ask use work call need want look turn start show move help play live happen like
		believe open walk offer remember consider appear wait serve expect stay reach kill remain suggest raise pass sell
		require report decide pull return explain hope develop carry receive agree support hit produce cover add count
		measure describe compare reduce increase change check create update delete allow refuse retry settle reserve
		release expire fail connect deliver store load stream merge split parse encode decode answer arrive attach
		balance borrow calculate capture celebrate collapse collect combine complain compute confirm convince deserve
		discover discuss distribute divide dominate earn encourage estimate examine exchange explore express finish follow
		generate handle hesitate identify ignore illustrate imagine improve insist inspect install interrupt introduce
		invent investigate launch maintain manage mention negotiate notice observe obtain organise participate perform
		persuade postpone predict prefer prepare preserve pretend prevent proceed promise propose protect publish realise
		recommend recover reject relax remind remove repair repeat replace represent rescue resist resolve respond restore
		reveal search separate simplify solve struggle surround survive suspect transform translate travel trust vanish
		visit wander whisper witness`))

	englishAdjectives = newZipf(strings.Fields(`new good first last long great little own other old right big high different small
		large next early young important few public bad same able local late hard major better economic strong possible
		whole free military true federal international full special easy clear recent certain personal open red difficult
		available likely short single medical current wrong private past foreign fine common poor natural significant
		similar hot dead central happy serious ready simple left physical general environmental financial blue democratic
		dark various entire close legal religious cold final main green nice huge popular traditional cultural wide
		ancient anonymous awkward brave bright broken careful cheap civil clever comfortable concurrent curious deep
		deliberate distant eager electric elegant empty exact familiar fragile gentle golden graceful heavy hidden honest
		hollow idle impossible innocent invisible jealous lazy liquid lonely loud magnetic mild modest narrow nervous
		obvious official ordinary painful patient peculiar plain pleasant polite precise proud quick quiet rapid rare
		reliable remote restless rough round rural scarce severe shallow sharp shy silent slow smooth solid steady
		stubborn subtle sudden sweet tender thin tidy tiny transparent typical unusual urban urgent useful vague valuable
		vast vivid vulnerable warm weak weird wild wise wooden`))

	englishAdverbs = newZipf(strings.Fields(`not also just now then so only very even back there here still never again too
		always really often however almost later far ever yet already perhaps sometimes instead once together soon
		quite usually probably rather maybe twice everywhere somewhat meanwhile nevertheless therefore otherwise`))

	englishPrepositions = newZipf(strings.Fields(`of in to for with on at from by about into through over after between
		without against during before under around behind across beyond near toward above below inside despite`))

	englishDeterminers = newZipf(strings.Fields(`the a the this his their its some our each every another that no any your these
		her my both several most`))

	englishSubjects = newZipf(strings.Fields(`it they he we I she you everyone nobody someone`))

	englishNames = newZipf(strings.Fields(`John Mary London Anna Paris David Europe Sarah Berlin Peter Africa Emma Tokyo Michael
		Amsterdam Laura Robert Chicago Susan Moscow Daniel Sophia Vienna Thomas Isabel Lisbon Ahmed Mumbai Helen Oliver
		Kowalski Johansson Fitzgerald Nakamura Papadopoulos McAllister O'Brien Hernandez`))

	englishOpeners = []string{"However, ", "In fact, ", "After all, ", "For example, ", "As a result, ", "By the way, ",
		"On the other hand, ", "At first, ", "Of course, ", "Then ", "And ", "But ", "So "}

	englishModals = []string{"will ", "would ", "can ", "could ", "should ", "must ", "may ", "might ", "doesn't ", "didn't ",
		"won't ", "can't ", "shouldn't ", "couldn't ", "has to ", "used to "}

	englishAsides = []string{"don't worry", "it's true", "I'm sure", "we'll see", "they've said so", "you're right", "he'd say",
		"that's all", "e.g. the second one", "i.e. nothing", "see below", "cf. p. 12"}
)

func isVowel(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }

// endsInY is true where y turns into i before an ending.
func endsInY(w string) bool { return strings.HasSuffix(w, "y") && !isVowel(w[len(w)-2]) }

func plural(w string) string {
	switch {
	case endsInY(w):
		return w[:len(w)-1] + "ies"
	case strings.HasSuffix(w, "s"), strings.HasSuffix(w, "x"), strings.HasSuffix(w, "ch"), strings.HasSuffix(w, "sh"):
		return w + "es"
	}
	return w + "s"
}

func past(w string) string {
	switch {
	case strings.HasSuffix(w, "e"):
		return w + "d"
	case endsInY(w):
		return w[:len(w)-1] + "ied"
	}
	return w + "ed"
}

func gerund(w string) string {
	if strings.HasSuffix(w, "e") && !strings.HasSuffix(w, "ee") {
		return w[:len(w)-1] + "ing"
	}
	return w + "ing"
}

func capital(w string) string {
	if c := w[0]; c >= 'a' && c <= 'z' {
		return string(c-32) + w[1:]
	}
	return w
}

var (
	englishBegins = []string{"an", "bar", "cen", "cor", "dis", "el", "fer", "gran", "har", "in", "jor", "kel", "lan", "mar", "nor",
		"os", "per", "quin", "ros", "sal", "ter", "ul", "ver", "wil", "yar", "zan", "con", "pro", "sub", "inter", "trans", "micro"}
	englishMiddles = []string{"a", "e", "i", "o", "u", "ber", "cal", "den", "fin", "gra", "li", "ma", "ni", "po", "ra", "si", "ta", "vi", "tro"}
	englishEnds    = []string{"tion", "ment", "ness", "ist", "ism", "ity", "ology", "ward", "ton", "ford", "ville", "stein", "ova", "ez",
		"ine", "ate", "ic", "al", "or", "um", "ish", "berg", "by", "wick"}
)

// rareWord coins a word, as one word in about fifteen of a text stands in no list of common ones.
func rareWord(r *Rand) string {
	w := pickOf(r, englishBegins...)
	for range r.Intn(3) {
		w += pickOf(r, englishMiddles...)
	}
	return w + pickOf(r, englishEnds...)
}

func englishNoun(r *Rand) string {
	if r.Chance(6) {
		return rareWord(r)
	}
	return englishNouns.pick(r)
}

func englishName(r *Rand) string {
	if r.Chance(2) {
		return capital(rareWord(r))
	}
	return englishNames.pick(r)
}

func englishNounPhrase(b []byte, r *Rand) []byte {
	switch n := r.Intn(20); {
	case n == 0:
		return append(b, englishName(r)...)
	case n == 1:
		return append(appendInt(b, 2+r.Intn(98)), (" " + plural(englishNoun(r)))...)
	case n == 2:
		return append(b, (englishName(r) + "'s " + englishNoun(r))...)
	case n < 6:
		b = append(b, plural(englishNoun(r))...)
	default:
		det := englishDeterminers.pick(r)
		mid := " "
		if r.Chance(3) {
			mid = " " + englishAdjectives.pick(r) + " "
		}
		noun := englishNoun(r)
		if r.Chance(9) {
			noun += pickOf(r, "-", " ") + englishNoun(r)
		}
		if det == "a" && (isVowel(noun[0]) && mid == " " || mid != " " && isVowel(mid[1])) {
			det = "an"
		}
		if r.Chance(4) && det != "a" && det != "an" && det != "this" && det != "each" && det != "every" && det != "another" {
			noun = plural(noun)
		}
		b = append(b, det+mid+noun...)
	}
	if r.Chance(4) {
		b = append(b, " "+englishPrepositions.pick(r)+" "...)
		b = append(b, englishDeterminers.pick(r)+" "+englishNoun(r)...)
	}
	return b
}

func englishVerb(r *Rand) string {
	v := englishVerbs.pick(r)
	if r.Chance(30) {
		v = pickOf(r, "re", "over", "under", "mis") + v
	}
	switch r.Intn(8) {
	case 0:
		return pickOf(r, englishModals...) + v
	case 1:
		return pickOf(r, "is ", "was ", "keeps ", "stopped ") + gerund(v)
	case 2:
		return pickOf(r, "has ", "had ", "was ", "isn't ", "wasn't ") + past(v)
	case 3:
		return plural(v)
	default:
		return past(v)
	}
}

func englishClause(b []byte, r *Rand) []byte {
	if r.Chance(3) {
		b = append(b, englishSubjects.pick(r)...)
	} else {
		b = englishNounPhrase(b, r)
	}
	b = append(b, ' ')
	if r.Chance(6) {
		b = append(b, englishAdverbs.pick(r)+" "...)
	}
	b = append(b, englishVerb(r)+" "...)
	b = englishNounPhrase(b, r)
	switch r.Intn(10) {
	case 0:
		b = append(b, " "+englishAdjectives.pick(r)+"ly"...)
	case 1, 2, 3:
		b = append(b, " "+englishPrepositions.pick(r)+" "...)
		b = englishNounPhrase(b, r)
	case 4:
		b = append(b, " in "...)
		b = appendInt(b, 1900+r.Intn(130))
	}
	return b
}

func englishSentence(b []byte, r *Rand) []byte {
	start := len(b)
	if r.Chance(7) {
		b = append(b, pickOf(r, englishOpeners...)...)
	}
	b = englishClause(b, r)
	switch n := r.Intn(24); {
	case n < 5:
		b = append(b, pickOf(r, ", and ", ", but ", " because ", " while ", ", which means ", "; ", ": ", " \u2014 ", " - ")...)
		b = englishClause(b, r)
	case n == 5:
		b = append(b, " ("+pickOf(r, englishAsides...)+")"...)
	case n == 6:
		b = append(b, ", "+pickOf(r, englishAsides...)...)
	case n == 7:
		b = append(b, ", \""+capital(englishNouns.pick(r))+" "+past(englishVerbs.pick(r))+"\""...)
	case n == 8:
		b = append(b, " by "...)
		b = append(appendInt(b, r.Intn(100)), '.', '0'+byte(r.Intn(10)), '%')
	case n == 9:
		b = append(b, " for $"...)
		b = append(appendInt(b, 1+r.Intn(900)), ",500"...)
	}
	if c := b[start]; c >= 'a' && c <= 'z' {
		b[start] = c - 32
	}
	return append(b, pickOf(r, ".", ".", ".", ".", ".", ".", ".", ".", "?", "!")...)
}

func englishParagraph(b []byte, r *Rand) []byte {
	for i := range 2 + r.Intn(6) {
		if i > 0 {
			b = append(b, ' ')
		}
		b = englishSentence(b, r)
	}
	return append(b, "\n\n"...)
}
