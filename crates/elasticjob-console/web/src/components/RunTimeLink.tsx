import { Link } from "react-router";

import { useRegistryLink } from "../app/registry";
import { Timestamp } from "./Timestamp";

/** A time that links to its run, if the run is known. */
export function RunTimeLink({ runId, at }: { runId: string | null; at: string | null }) {
  const to = useRegistryLink();
  if (!runId) return <Timestamp at={at} />;
  return (
    <Link className="name" to={to("runs", runId)}>
      <Timestamp at={at} />
    </Link>
  );
}
