// Builds the page into the Python package, where `clew view` serves it from. `make build` and the package's build hook
// run it; CLEW_PAGE_DIRECTORY says where to instead.
import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./",
  build: {
    outDir: process.env.CLEW_PAGE_DIRECTORY ?? "../src/clew/_page",
    emptyOutDir: true,
    target: "es2022",
    // Nothing inline: the page's policy allows scripts and styles from the server only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  worker: { format: "es" },
  test: {
    setupFiles: ["src/base/properties.test-support.ts"],
    testTimeout: 60_000 * Number(process.env.CLEW_FUZZ_FACTOR ?? "1"),
  },
});
