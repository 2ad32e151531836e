package dialect

// What a meter says of an answer, at its end or before.

func (m *answerMeter) Usage() (Usage, Trust) {
	u, trust := m.reported()
	if m.Finished() { // all that were made are here, whatever is said of tokens
		u.Images = max(u.Images, m.pictures)
	}
	return u, trust
}

func (m *answerMeter) reported() (Usage, Trust) {
	u := m.usage
	if m.told.seen { // what is said of the whole answer doesn't go stale
		u.merge(m.told)
	}
	switch {
	case m.api.free && !m.Failed():
		return Usage{}, WholeUsage
	case !u.seen, u.empty(): // none, or a mark of the place where it will stand
		return Usage{}, NoUsage
	case u.audioMillis > 0 && u.input == 0 && u.output == 0:
		return u.figures(), WholeUsage // billed by the length of what was heard
	case u.early, m.produced && (u.output == 0 || m.stale && !m.told.seen):
		// The figure of a moment before the end: a prompt doesn't grow while it is answered.
		if u.input == 0 {
			return Usage{}, NoUsage
		}
		return u.figures(), InputUsage
	case u.input == 0 && u.output > 0 && u.audioMillis == 0:
		return u.figures(), OutputUsage // no answer follows from no prompt
	}
	return u.figures(), WholeUsage
}

func (m *answerMeter) Produced() bool { return m.produced }

func (m *answerMeter) Failed() bool {
	if s := m.head.Status; s != 0 && (s < 200 || s > 299) {
		return true
	}
	return m.inBand && !m.produced
}

func (m *answerMeter) Finished() bool {
	return m.done || m.closedArray || m.mode == readsJSON && m.json.state == docDone && (m.finish || m.inBand || !m.api.ends)
}

func (m *answerMeter) Opaque() bool {
	return m.mode == readsNothing && !m.produced && !m.usage.seen && !m.told.seen
}

func (m *answerMeter) Plain() bool { return m.mode == undecided || m.mode == readsJSON }
