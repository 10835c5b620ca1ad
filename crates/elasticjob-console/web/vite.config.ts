/// <reference types="vitest/config" />

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

// `npm run dev` serves the pages from source; the API is that of a console that runs (CONSOLE=http://127.0.0.1:8899).
const api = process.env.CONSOLE ?? "http://127.0.0.1:8899";

/** Compresses large assets at build time, so that the console does not compress them for each request. */
const precompress: Plugin = {
  name: "precompress",
  apply: "build",
  closeBundle() {
    const folder = join(import.meta.dirname, "dist/assets");
    for (const name of readdirSync(folder).filter((each) => /\.(js|css)$/.test(each))) {
      writeFileSync(
        join(folder, `${name}.gz`),
        gzipSync(readFileSync(join(folder, name)), { level: 9 }),
      );
    }
  },
};

export default defineConfig({
  plugins: [react(), precompress],
  build: {
    target: "es2022",
    sourcemap: false,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 900,
    // Dependencies change seldom; in their own chunk they stay cached across releases.
    rolldownOptions: {
      output: { codeSplitting: { groups: [{ name: "vendor", test: /node_modules\/(?!uplot)/ }] } },
    },
  },
  server: { proxy: { "/api": { target: api, changeOrigin: true } } },
  test: { include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
});
