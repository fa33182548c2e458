// Rules beyond the compiler's. How the text is laid out is prettier's business.
import tseslint from "typescript-eslint";

export default tseslint.config({ ignores: ["node_modules", "src/protocol/generated.ts"] }, ...tseslint.configs.strict, {
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
    "no-restricted-syntax": [
      "error",
      {
        selector: "MemberExpression[object.name='event'][property.name=/^(key|code)$/]",
        message: "What keys do is bound with bindKeys (model/keys.ts), from which the help is made.",
      },
    ],
    "prefer-const": "error",
  },
});
