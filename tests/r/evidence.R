# The reference values in evidence.json, computed by R 4 with pROC (Debian: r-base-core, r-cran-proc).
#
#   python tests/r/rows.py > rows.csv && Rscript tests/r/evidence.R rows.csv > tests/r/evidence.json
#
# Nothing of calibrant is used here: isoreg for the isotonic fit, glm for the lines, pROC for DeLong.
suppressPackageStartupMessages(library(pROC))
rows <- read.csv(commandArgs(trailingOnly = TRUE)[1])
y <- rows$y; a <- rows$a; b <- rows$b; n <- length(y)
out <- list()

# CORP decomposition (Dimitriadis, Gneiting, Jordan 2021)
brier <- function(p) mean((p - y)^2)
logs <- function(p) mean(ifelse(y == 1, -log(p), -log(1 - p)))
order_a <- order(a)
fit <- numeric(n); fit[order_a] <- isoreg(a[order_a], y[order_a])$yf
base <- rep(mean(y), n)
safe_logs <- function(p) mean(ifelse(y == 1, ifelse(p > 0, -log(p), Inf), ifelse(p < 1, -log(1 - p), Inf)))
out$brier <- c(brier(a), brier(a) - brier(fit), brier(base) - brier(fit), brier(base))
out$log <- c(logs(a), logs(a) - safe_logs(fit), logs(base) - safe_logs(fit), logs(base))

# DeLong
roc_a <- roc(y, a, quiet = TRUE, direction = "<"); roc_b <- roc(y, b, quiet = TRUE, direction = "<")
out$delong <- as.numeric(ci.auc(roc_a, method = "delong"))
out$delong_variance <- var(roc_a, method = "delong")
paired <- roc.test(roc_a, roc_b, method = "delong", paired = TRUE)
out$delong_paired <- c(as.numeric(auc(roc_a) - auc(roc_b)), as.numeric(paired$statistic))

# Hosmer-Lemeshow on ten groups of equal size
group <- cut(a, quantile(a, 0:10 / 10), include.lowest = TRUE, labels = FALSE)
observed <- tapply(y, group, sum); expected <- tapply(a, group, sum); size <- tapply(y, group, length)
mean_p <- expected / size
statistic <- sum((observed - expected)^2 / (size * mean_p * (1 - mean_p)))
out$hosmer_lemeshow <- c(statistic, pchisq(statistic, 10, lower.tail = FALSE), pchisq(statistic, 8, lower.tail = FALSE))

# Spiegelhalter
z <- sum((y - a) * (1 - 2 * a)) / sqrt(sum((1 - 2 * a)^2 * a * (1 - a)))
out$spiegelhalter <- c(z, 2 * pnorm(-abs(z)))

# Calibration line and Cox's joint test
logit <- qlogis(a); control <- glm.control(epsilon = 1e-14, maxit = 100)
line <- glm(y ~ logit, family = binomial, control = control)
shift <- glm(y ~ offset(logit), family = binomial, control = control)
joint <- 2 * (as.numeric(logLik(line)) - sum(dbinom(y, 1, a, log = TRUE)))
out$line <- c(unname(coef(line)[2]), unname(coef(line)[1]), unname(coef(shift)[1]))
out$line_errors <- unname(sqrt(diag(vcov(line))))[2:1]
out$cox <- c(joint, pchisq(joint, 2, lower.tail = FALSE))

# Clopper-Pearson
out$binomial <- unlist(lapply(list(c(0, 12), c(3, 40), c(12, 12), c(57, 200)), function(k) binom.test(k[1], k[2])$conf.int))

parts <- sapply(names(out), function(name) sprintf('  "%s": [%s]', name, paste(sprintf("%.15g", out[[name]]), collapse = ", ")))
cat("{\n", paste(parts, collapse = ",\n"), "\n}\n", sep = "")
