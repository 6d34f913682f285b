-- reads: catalog
-- The clusters of an account that are meant by a name, the latest first, and how many these are; else the one that comes
-- closest to a number, or to the name if any is near.
WITH named AS (
    SELECT
        cluster, cluster_id, started_at, name = $name AS exact,
        CASE WHEN $number IS NULL THEN 1 - jaro_winkler_similarity(lower(name), lower($name)) ELSE abs(cluster_id - $number) END
            AS distance
    FROM catalog
),
counted AS (SELECT *, count(*) FILTER (exact) OVER () AS n_exact FROM named)
SELECT cluster, n_exact
FROM counted
WHERE exact OR (n_exact = 0 AND ($number IS NOT NULL OR distance < 0.3))
ORDER BY CASE WHEN n_exact = 0 THEN distance END, started_at DESC, cluster_id DESC
LIMIT 5
