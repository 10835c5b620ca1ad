import { useRouteError } from "react-router";
import { Problem } from "../api/problem";
import { useText } from "../i18n";
import { Failure } from "../parts/states";

/** A mistake of ours must not leave a blank page. */
export function Broken() {
  const t = useText();
  const error = useRouteError();
  const detail = error instanceof Error ? error.message : String(error);
  return (
    <main>
      <Failure
        error={new Problem(0, "page", detail, t.ways.page)}
        again={() => location.reload()}
      />
    </main>
  );
}
