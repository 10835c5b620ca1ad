/// <reference types="vitest/config" />
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// `npm run dev` serves the pages from source; the API is that of a console that runs (CONSOLE=http://127.0.0.1:8899).
const api = process.env.CONSOLE ?? "http://127.0.0.1:8899";

export default defineConfig({
  plugins: [react()],
  build: { target: "es2022", sourcemap: false, assetsInlineLimit: 0, chunkSizeWarningLimit: 900 },
  server: { proxy: { "/api": { target: api, changeOrigin: true } } },
  test: { include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
});
