// Rules beyond the compiler's. How the text is laid out is prettier's business.
import tseslint from "typescript-eslint";

/** Folders of src, from the top to the bottom: a module imports from its own or from one below. */
const FLOORS = ["views", "model", "api", "protocol", "base"];

/** Packages that modules of a floor may import; tests may import any. */
const PACKAGES = { views: ["preact", "preact/hooks", "@preact/signals"], model: ["@preact/signals"] };

/** How many folders deep a module may lie. */
const DEPTHS = [1, 2];

const SYNTAX = [
  {
    selector: "MemberExpression[object.name='event'][property.name=/^(key|code)$/]",
    message: "What keys do is bound with bindKeys (model/keys.ts), from which the help is made.",
  },
  {
    selector: "ImportExpression[source.value!=/^\\.\\/[^/]+$/], TSImportType",
    message: "What is not imported at the top, where the floor is seen to, lies beside the module that imports it.",
  },
  {
    selector: "NewExpression[callee.name='URL'] > Literal[value=/^\\.\\.|^\\.\\/.*\\//]",
    message: "A worker lies beside the module that starts it.",
  },
];

function restrict(name, ...options) {
  return { [name]: ["error", ...options] };
}

/** What a module may import that lies `depth` folders below src, on a floor. */
const floors = FLOORS.flatMap((floor, index) =>
  DEPTHS.flatMap((depth) => {
    const place = `src/${floor}/${"*/".repeat(depth - 1)}`;
    const below = FLOORS.slice(index);
    const packages = PACKAGES[floor] ?? [];
    const ways = [
      {
        regex: `^(\\.\\./){${depth}}(?!(${below.join("|")})/)`,
        message: `From ${floor} only ${below.join(", ")} may be imported.`,
      },
      { regex: "^\\./\\.|[^.]/\\.", message: "There is a shorter way to it." },
    ];
    const others = {
      regex: `^(?!\\.|(${packages.join("|")})$)`,
      message: `Of packages ${floor} may import ${packages.join(", ") || "none"}.`,
    };
    const imports = (...patterns) => restrict("no-restricted-imports", { patterns });
    return [
      {
        files: [`${place}*.{ts,tsx}`],
        rules: { ...restrict("no-restricted-syntax", ...SYNTAX), ...imports(...ways, others) },
      },
      { files: [`${place}*.test.ts`, `${place}*.test-support.ts`], rules: imports(...ways) },
    ];
  }),
);

export default tseslint.config(
  { ignores: ["node_modules", "src/protocol/generated.ts"] },
  ...tseslint.configs.strict,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    files: ["src/**/*.ts", "src/**/*.tsx"],
    rules: {
      // Indices into typed arrays are within them by construction; a check at every one would hide the meaning.
      "@typescript-eslint/no-non-null-assertion": "off",
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/no-misused-promises": "error",
      "@typescript-eslint/switch-exhaustiveness-check": "error",
      // Reading a signal is how an effect says what it depends on.
      "@typescript-eslint/no-unused-expressions": "off",
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-console": "error",
      "prefer-const": "error",
    },
  },
  {
    files: ["src/*/**/*.{ts,tsx}"],
    rules: restrict("no-restricted-syntax", {
      selector: "Program",
      message: "Its folder is on none of FLOORS, or deeper than DEPTHS.",
    }),
  },
  ...floors,
);
