import { localStorageColorSchemeManager, MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "react-router";

import { toProblem } from "../api/problem";
import { LanguageProvider } from "../i18n";
import { router } from "./routes";
import { SessionProvider } from "./session";
import { theme } from "./theme";

const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
// Overlays add a style element and read its nonce from here.
(globalThis as { __webpack_nonce__?: string }).__webpack_nonce__ = nonce;

const scheme = localStorageColorSchemeManager({ key: "elasticjob-scheme" });

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1_000,
      // Only connection failures are worth a retry; a rejected request stays rejected.
      retry: (count, error) => count < 2 && [0, 503].includes(toProblem(error).status),
      retryDelay: (count) => 500 * 2 ** count,
    },
  },
});

export function App() {
  return (
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      colorSchemeManager={scheme}
      getStyleNonce={() => nonce}
    >
      <LanguageProvider>
        <QueryClientProvider client={client}>
          <SessionProvider>
            <RouterProvider router={router} />
          </SessionProvider>
        </QueryClientProvider>
      </LanguageProvider>
    </MantineProvider>
  );
}
