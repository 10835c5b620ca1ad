import { Navigate } from "react-router";

import { useRegistries } from "../api/queries";
import { EmptyState, ErrorState, Loading } from "../components/states";
import { useText } from "../i18n";
import { lastRegistry } from "./lastRegistry";

/** Redirects to the last registry that was open, or to the first one. */
export function Home() {
  const t = useText();
  const registries = useRegistries();
  if (registries.isPending) return <Loading />;
  if (!registries.data)
    return <ErrorState error={registries.error} onRetry={() => void registries.refetch()} />;
  const names = registries.data.map((each) => each.name);
  const last = lastRegistry.get();
  const name = last && names.includes(last) ? last : names[0];
  if (!name)
    return (
      <EmptyState icon="registry" title={t.registries.none}>
        {t.registries.noneAbout}
      </EmptyState>
    );
  return <Navigate to={`/r/${encodeURIComponent(name)}`} replace />;
}
