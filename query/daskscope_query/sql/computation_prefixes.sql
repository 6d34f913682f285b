-- reads: computations, groups
-- When a computation of one cluster ran, and the prefixes of its tasks; `id` is '<boot>-<no>'.
SELECT
    c.boot,
    any_value(c.start_at) AS start_at,
    any_value(c.stop_at) AS stop_at,
    list(DISTINCT g.prefix ORDER BY g.prefix) FILTER (g.prefix IS NOT NULL) AS prefixes
FROM computations c
LEFT JOIN groups g ON g.cluster = c.cluster AND g.boot = c.boot AND g.computation = c.no
WHERE c.cluster = $cluster AND c.boot || '-' || c.no = $id
GROUP BY c.boot
