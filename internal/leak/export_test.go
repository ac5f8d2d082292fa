package leak

import "time"

func SetPatience(d time.Duration) { patience = d }
