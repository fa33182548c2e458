// Builds the page into the Python package, where `clew view` serves it from. `make build` and the package's build hook
// run it; CLEW_PAGE_DIRECTORY says where to instead.
import { configDefaults, defineConfig } from "vitest/config";

// What is held against limits of time runs alone, by `make test-timing`.
const isTiming = process.env.CLEW_TIMING === "1";
const exclude = [...configDefaults.exclude, isTiming ? "**/!(*.timing).test.ts" : "**/*.timing.test.ts"];

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
    // One after another on a thread, as there are more files than processors: half of what the tests take is starting
    // processes and making the same modules anew otherwise. What keeps things for the whole page has that: `views`.
    pool: "threads",
    projects: [
      { extends: true, test: { name: "views", include: ["src/views/**/*.test.ts"], exclude } },
      { extends: true, test: { name: "pure", include: ["src/!(views)/**/*.test.ts"], exclude, isolate: false } },
    ],
    setupFiles: ["src/base/properties.test-support.ts"],
    testTimeout: 60_000 * Number(process.env.CLEW_FUZZ_FACTOR ?? "1"),
  },
});
