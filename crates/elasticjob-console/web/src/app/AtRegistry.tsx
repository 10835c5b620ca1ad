import { Alert, Box } from "@mantine/core";
import { useEffect, useMemo } from "react";
import { Outlet, useParams } from "react-router";

import { useLive } from "../api/live";
import { Problem } from "../api/problem";
import { useRegistries } from "../api/queries";
import { useText } from "../i18n";
import { Icon } from "../parts/Icon";
import { Failure, Loading } from "../parts/states";
import { lastRegistry } from "./lastRegistry";
import { RegistryContext } from "./registry";

/** Everything below /r/{registry}: live, and with the role one has there. */
export function AtRegistry() {
  const { registry = "" } = useParams();
  const registries = useRegistries();
  const here = registries.data?.find((each) => each.name === registry);
  const role = here?.role ?? "viewer";
  const context = useMemo(() => ({ registry, role }), [registry, role]);
  useEffect(() => {
    if (here) lastRegistry.set(registry);
  }, [here, registry]);

  if (registries.isPending) return <Loading />;
  // What was known holds until something else is: a look that failed takes nobody's page away.
  if (!registries.data) {
    return <Failure error={registries.error} again={() => void registries.refetch()} />;
  }
  if (!here) return <Unknown registry={registry} />;
  return (
    <RegistryContext value={context}>
      <Line key={registry} registry={registry} />
      <Outlet key={registry} />
    </RegistryContext>
  );
}

function Unknown({ registry }: { registry: string }) {
  const t = useText();
  return <Failure error={new Problem(404, "notFound", t.registries.unknown(registry))} />;
}

/** Says so when what is shown is not what is. */
function Line({ registry }: { registry: string }) {
  const t = useText();
  const line = useLive(registry);
  return (
    <Box aria-live="polite" data-line={line}>
      {(line === "registryDown" || line === "lost") && (
        <Alert color="yellow" variant="light" mb="md" icon={<Icon name="alert" />}>
          {line === "lost" ? t.line.lost : t.line.registryDown}
        </Alert>
      )}
    </Box>
  );
}
