// Package lab is a module of its own for what the tokenizer is made, compared and timed with; its
// dependencies stay out of the project's. See README.md.
package lab
