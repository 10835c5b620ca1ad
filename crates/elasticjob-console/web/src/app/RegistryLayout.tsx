import { Alert, Box } from "@mantine/core";
import { useEffect, useMemo } from "react";
import { Outlet, useParams } from "react-router";

import { useLive } from "../api/live";
import { Problem } from "../api/problem";
import { useRegistries } from "../api/queries";
import { Icon } from "../components/Icon";
import { ErrorState, Loading } from "../components/states";
import { useText } from "../i18n";
import { lastRegistry } from "./lastRegistry";
import { RegistryContext } from "./registry";

/** Layout of all pages below /r/{registry}: subscribes to its events and provides the user's role. */
export function RegistryLayout() {
  const { registry = "" } = useParams();
  const registries = useRegistries();
  const current = registries.data?.find((each) => each.name === registry);
  const role = current?.role ?? "viewer";
  const context = useMemo(() => ({ registry, role }), [registry, role]);
  useEffect(() => {
    if (current) lastRegistry.set(registry);
  }, [current, registry]);

  if (registries.isPending) return <Loading />;
  // A failed refetch keeps the cached data, so that the page does not disappear.
  if (!registries.data) {
    return <ErrorState error={registries.error} onRetry={() => void registries.refetch()} />;
  }
  if (!current) return <UnknownRegistry registry={registry} />;
  return (
    <RegistryContext value={context}>
      <ConnectionBanner key={registry} registry={registry} />
      <Outlet key={registry} />
    </RegistryContext>
  );
}

function UnknownRegistry({ registry }: { registry: string }) {
  const t = useText();
  return <ErrorState error={new Problem(404, "notFound", t.registries.unknown(registry))} />;
}

/** Warns if the page may be out of date. */
function ConnectionBanner({ registry }: { registry: string }) {
  const t = useText();
  const connection = useLive(registry);
  return (
    <Box aria-live="polite" data-connection={connection}>
      {(connection === "registryDown" || connection === "lost") && (
        <Alert color="yellow" variant="light" mb="md" icon={<Icon name="alert" />}>
          {connection === "lost" ? t.connection.lost : t.connection.registryDown}
        </Alert>
      )}
    </Box>
  );
}
