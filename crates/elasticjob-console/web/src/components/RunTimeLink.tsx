import { Link } from "react-router";

import { useRegistryLink } from "../app/registry";
import { Timestamp } from "./Timestamp";

/** When something of a run happened; leads to the run, if it is known which. */
export function RunTimeLink({ runId, at }: { runId: string | null; at: string | null }) {
  const to = useRegistryLink();
  if (!runId) return <Timestamp at={at} />;
  return (
    <Link className="name" to={to("runs", runId)}>
      <Timestamp at={at} />
    </Link>
  );
}
