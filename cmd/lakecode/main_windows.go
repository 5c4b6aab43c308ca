package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "lakecode: Windows is not supported. Use Linux, macOS or WSL.")
	os.Exit(2)
}
