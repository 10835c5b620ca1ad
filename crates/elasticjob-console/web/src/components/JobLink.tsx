import { Link } from "react-router";

import { useRegistryLink } from "../app/registry";

export function JobLink({ name }: { name: string }) {
  const to = useRegistryLink();
  return (
    <Link className="name wrap" to={to("jobs", name)}>
      {name}
    </Link>
  );
}
