"""clew follows every thread of a native Linux program and records what really ran."""
