import { useRouteError } from "react-router";

import { Problem } from "../api/problem";
import { ErrorState } from "../components/states";
import { useText } from "../i18n";

/** Shown when a page throws, instead of a blank page. */
export function ErrorPage() {
  const t = useText();
  const error = useRouteError();
  const detail = error instanceof Error ? error.message : String(error);
  return (
    <main>
      <ErrorState
        error={new Problem(0, "page", detail, t.hints.page)}
        onRetry={() => location.reload()}
      />
    </main>
  );
}
