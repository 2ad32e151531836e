package corpus

import "strings"

// Russian nouns and adjectives stand in their bare stems' nominative; the endings below are those of
// the commonest patterns, so that the text has the inflected look that a tokenizer meets.
var (
	russianNouns = newZipf(strings.Fields(`год человек день раз рука работа слово место лицо дело время друг жизнь дом вопрос
		сила мир случай город страна система группа процесс условие результат область задача модель сервер запрос ответ
		ключ лимит бюджет токен поток очередь память сеть адрес ошибка отчёт правило договор проект вечер утро берег
		дорога река лес море остров завод рынок улица комната окно дверь книга письмо журнал газета школа учитель врач
		инженер художник поезд корабль самолёт мост башня площадь театр музей история наука природа погода ветер снег
		дождь солнце звезда земля камень дерево цветок птица собака лошадь праздник подарок голос песня танец мысль чувство
		надежда победа помощь защита безопасность скорость температура расстояние количество качество производство`))
	russianVerbs = newZipf(strings.Fields(`быть стать говорить знать видеть хотеть идти делать дать работать жить думать смотреть
		сказать понять найти получить написать читать открыть закрыть проверить измерить сравнить изменить создать удалить
		сохранить отправить передать ответить спросить объяснить решить выбрать построить сломать починить запустить
		остановить увеличить уменьшить вспомнить забыть начать закончить помочь учить играть петь рисовать путешествовать`))
	russianAdjectives = newZipf(strings.Fields(`нов больш последн перв добр стар молод хорош важн разн общ главн высок сильн прост
		известн красн бел чёрн зелён тих громк быстр медленн тёпл холодн далёк близк широк узк глубок светл тёмн древн
		современн технический городск морск зимн летн личн открыт закрыт точн пуст полн редк част`))
	russianAdverbs = newZipf(strings.Fields(`очень уже ещё так там здесь тогда теперь всегда никогда часто редко быстро медленно
		вместе снова сразу потом почти совсем особенно например впрочем наконец действительно`))
	russianJoins   = []string{", и ", ", но ", ", а ", ", потому что ", ", когда ", ", который ", ", чтобы ", " и ", " — "}
	russianEndings = []string{"ый", "ая", "ое", "ые", "ого", "ой", "ых", "ым", "ую"}
	russianCases   = []string{"", "", "", "а", "у", "ом", "е", "ы", "ов", "ам", "ами", "ах"}
	russianPasts   = []string{"л", "ла", "ло", "ли", "ть", "т"}
)

func russianNounPhrase(b []byte, r *Rand) []byte {
	if r.Chance(3) {
		b = append(b, russianAdjectives.pick(r)+pickOf(r, russianEndings...)+" "...)
	}
	return append(b, russianNouns.pick(r)+pickOf(r, russianCases...)...)
}

func russianClause(b []byte, r *Rand) []byte {
	if r.Chance(3) {
		b = append(b, pickOf(r, "он", "она", "они", "мы", "я", "вы", "это", "кто-то")...)
	} else {
		b = russianNounPhrase(b, r)
	}
	b = append(b, ' ')
	if r.Chance(4) {
		b = append(b, russianAdverbs.pick(r)+" "...)
	}
	b = append(b, strings.TrimSuffix(russianVerbs.pick(r), "ть")+pickOf(r, russianPasts...)+" "...)
	if r.Chance(3) {
		b = append(b, pickOf(r, "в ", "на ", "из ", "по ", "для ", "без ", "через ", "после ", "у ", "с ")...)
	}
	return russianNounPhrase(b, r)
}

func russianParagraph(b []byte, r *Rand) []byte {
	for i := range 2 + r.Intn(6) {
		if i > 0 {
			b = append(b, ' ')
		}
		// A capital of the Cyrillic alphabet stands 32 places before its small letter, except ё.
		start := len(b)
		b = russianClause(b, r)
		if c := b[start+1]; b[start] == 0xd0 && c >= 0xb0 {
			b[start+1] = c - 0x20
		} else if b[start] == 0xd1 && c <= 0x8f {
			b[start], b[start+1] = 0xd0, c+0x20
		}
		for r.Chance(2) {
			b = append(b, pickOf(r, russianJoins...)...)
			b = russianClause(b, r)
		}
		b = append(b, pickOf(r, ".", ".", ".", ".", ".", "?", "!", "...")...)
	}
	return append(b, "\n\n"...)
}
