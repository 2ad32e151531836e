// Package policy holds the rules of this repository as tests: who may import whom, what the pure
// rooms may do, which words tracked files may hold, which licences dependencies may have.
//
// It exports nothing and nobody imports it. A test that fails here states a rule of the design;
// mend the code that breaks it, and change the rule only together with the design.
package policy
