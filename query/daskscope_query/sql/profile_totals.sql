-- reads: profiles, catalog
-- How much a profile holds, and how much of rare stacks was left out of it (stacks without frames, of all prefixes
-- together); narrowed as the profile.
WITH mine AS (
    SELECT
        len(stack) = 0 AS is_cut,
        len(stack) > 0
            AND ($prefixes::VARCHAR[] IS NULL OR list_contains($prefixes::VARCHAR[], prefix)) AS is_wanted,
        count,
        capped(count::HUGEINT * sample_us) AS us
    FROM profiles
    WHERE ($cluster::VARCHAR IS NULL OR cluster = $cluster)
      AND ($user::VARCHAR IS NULL OR cluster IN (SELECT cluster FROM catalog WHERE "user" = $user))
      AND ($boot::VARCHAR IS NULL OR boot = $boot)
      AND ($since::TIMESTAMPTZ IS NULL OR to_at > $since)
      AND ($until::TIMESTAMPTZ IS NULL OR from_at < $until)
)
SELECT
    capped(coalesce(sum(count) FILTER (is_wanted), 0)) AS count,
    capped(coalesce(sum(us) FILTER (is_wanted), 0)) AS sampled_us,
    capped(coalesce(sum(count) FILTER (is_cut), 0)) AS cut,
    capped(coalesce(sum(us) FILTER (is_cut), 0)) AS cut_us
FROM mine
