package bpe

//go:generate go run -C ../internal/lab ./ranks -out ../../bpe
