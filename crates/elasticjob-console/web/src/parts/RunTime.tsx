import { Link } from "react-router";

import { useTo } from "../app/registry";
import { When } from "./When";

/** When something of a run happened; leads to the run, if it is known which. */
export function RunTime({ runId, at }: { runId: string | null; at: string | null }) {
  const to = useTo();
  if (!runId) return <When at={at} />;
  return (
    <Link className="name" to={to("runs", runId)}>
      <When at={at} />
    </Link>
  );
}
